package scheduling

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// systemClass is a priority of what a cluster cannot be without.
type systemClass struct {
	value       int32
	description string
}

// systemClasses are there in every cluster, with these values.
var systemClasses = map[string]systemClass{
	"system-cluster-critical": {2000000000, "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."},
	"system-node-critical":    {2000001000, "Used for system critical pods that must not be moved from their current node."},
}

// SystemClasses returns the priority classes that are there in every cluster.
func SystemClasses() []*schedulingv1.PriorityClass {
	var out []*schedulingv1.PriorityClass
	for name, class := range systemClasses {
		out = append(out, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: class.value, Description: class.description})
	}
	return out
}

const (
	systemPrefix = "system-"
	highestUser  = int32(1000000000)
)

func priorityClass() *resource.Kind[*schedulingv1.PriorityClass] {
	return &resource.Kind[*schedulingv1.PriorityClass]{
		Resource:            "priorityclasses",
		ShortNames:          []string{"pc"},
		ClusterWide:         true,
		AllowCreateOnUpdate: true,
		Generation:          true,
		New:                 func() *schedulingv1.PriorityClass { return &schedulingv1.PriorityClass{} },
		NewList:             func() runtime.Object { return &schedulingv1.PriorityClassList{} },
		Default: func(c *schedulingv1.PriorityClass) {
			if c.PreemptionPolicy == nil {
				c.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority)
			}
		},
		Validate: validateClass,
		ValidateUpdate: func(c, old *schedulingv1.PriorityClass) field.ErrorList {
			var errs field.ErrorList
			if c.Value != old.Value {
				errs = append(errs, field.Forbidden(field.NewPath("value"), "may not be changed in an update."))
			}
			return append(errs, rules.Unchanged(c.PreemptionPolicy, old.PreemptionPolicy, field.NewPath("preemptionPolicy"))...)
		},
		Columns: []resource.Column[*schedulingv1.PriorityClass]{
			{Name: "Value", Type: "integer", Description: "The priority.", Value: func(c *schedulingv1.PriorityClass) any { return int64(c.Value) }},
			{Name: "Global-Default", Type: "boolean", Description: "Whether pods without a class get this one.", Value: func(c *schedulingv1.PriorityClass) any { return c.GlobalDefault }},
			resource.Age[*schedulingv1.PriorityClass](),
			{Name: "PreemptionPolicy", Description: "Whether pods of the class may take the place of others.", Value: func(c *schedulingv1.PriorityClass) any {
				return string(ptr.Deref(c.PreemptionPolicy, corev1.PreemptLowerPriority))
			}},
		},
		Wrap: func(s *resource.Storage) rest.Storage { return &classStorage{s} },
	}
}

func validateClass(c *schedulingv1.PriorityClass) field.ErrorList {
	errs := rules.OneOfPointer(c.PreemptionPolicy, field.NewPath("preemptionPolicy"), corev1.PreemptLowerPriority, corev1.PreemptNever)
	if strings.HasPrefix(c.Name, systemPrefix) {
		if class, ok := systemClasses[c.Name]; !ok || class.value != c.Value {
			errs = append(errs, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(
				"priority class names with '%s' prefix are reserved for system use only. error: %s is not a known system priority class, or its value is not %d", systemPrefix, c.Name, class.value)))
		}
		return errs
	}
	if c.Value > highestUser {
		errs = append(errs, field.Forbidden(field.NewPath("value"), fmt.Sprintf("maximum allowed value of a user defined priority is %v", highestUser)))
	}
	return errs
}

// classStorage keeps the system's own classes from being deleted.
type classStorage struct{ *resource.Storage }

// Delete implements rest.GracefulDeleter.
func (s *classStorage) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	if _, ok := systemClasses[name]; ok {
		return nil, false, apierrors.NewForbidden(schedulingv1.Resource("priorityclasses"), name, fmt.Errorf("this is a system priority class and cannot be deleted"))
	}
	return s.Storage.Delete(ctx, name, validate, options)
}
