// Package node describes the kinds of the group node.k8s.io.
package node

import (
	nodev1 "k8s.io/api/node/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: nodev1.SchemeGroupVersion,
		AddToScheme:  nodev1.AddToScheme,
		Kinds:        []resource.Description{runtimeClass()},
	}
}

func runtimeClass() *resource.Kind[*nodev1.RuntimeClass] {
	return &resource.Kind[*nodev1.RuntimeClass]{
		Resource:    "runtimeclasses",
		ClusterWide: true,
		New:         func() *nodev1.RuntimeClass { return &nodev1.RuntimeClass{} },
		NewList:     func() runtime.Object { return &nodev1.RuntimeClassList{} },
		Validate:    validateRuntimeClass,
		ValidateUpdate: func(c, old *nodev1.RuntimeClass) field.ErrorList {
			return append(validateRuntimeClass(c), rules.Unchanged(c.Handler, old.Handler, field.NewPath("handler"))...)
		},
		Columns: []resource.Column[*nodev1.RuntimeClass]{
			{Name: "Handler", Description: "The configuration of the container runtime.", Value: func(c *nodev1.RuntimeClass) any { return c.Handler }},
			resource.Age[*nodev1.RuntimeClass](),
		},
	}
}

func validateRuntimeClass(c *nodev1.RuntimeClass) field.ErrorList {
	errs := rules.Label(c.Handler, field.NewPath("handler"))
	if c.Overhead != nil {
		path := field.NewPath("overhead", "podFixed")
		for name, quantity := range c.Overhead.PodFixed {
			errs = append(errs, rules.Qualified(string(name), path.Key(string(name)))...)
			if quantity.Sign() < 0 {
				errs = append(errs, field.Invalid(path.Key(string(name)), quantity.String(), "must be greater than or equal to 0"))
			}
		}
	}
	if c.Scheduling != nil {
		errs = append(errs, metavalidation.ValidateLabels(c.Scheduling.NodeSelector, field.NewPath("scheduling", "nodeSelector"))...)
	}
	return errs
}
