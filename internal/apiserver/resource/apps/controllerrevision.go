package apps

import (
	"bytes"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func controllerRevision() *resource.Kind[*appsv1.ControllerRevision] {
	return &resource.Kind[*appsv1.ControllerRevision]{
		Resource: "controllerrevisions",
		New:      func() *appsv1.ControllerRevision { return &appsv1.ControllerRevision{} },
		NewList:  func() runtime.Object { return &appsv1.ControllerRevisionList{} },
		Validate: validateRevision,
		ValidateUpdate: func(r, old *appsv1.ControllerRevision) field.ErrorList {
			errs := validateRevision(r)
			if !bytes.Equal(r.Data.Raw, old.Data.Raw) {
				errs = append(errs, field.Invalid(field.NewPath("data"), "", "field is immutable"))
			}
			return errs
		},
		Columns: []resource.Column[*appsv1.ControllerRevision]{
			{Name: "Controller", Description: "Whose revision it is.", Value: func(r *appsv1.ControllerRevision) any { return controllerText(r) }},
			{Name: "Revision", Type: "integer", Description: "Number of the revision.", Value: func(r *appsv1.ControllerRevision) any { return r.Revision }},
			resource.Age[*appsv1.ControllerRevision](),
		},
	}
}

func validateRevision(r *appsv1.ControllerRevision) field.ErrorList {
	errs := rules.NotNegative(r.Revision, field.NewPath("revision"))
	if r.Data.Raw == nil && r.Data.Object == nil {
		errs = append(errs, field.Required(field.NewPath("data"), "data is mandatory"))
	}
	return errs
}

func controllerText(r *appsv1.ControllerRevision) string {
	owner := metav1.GetControllerOf(r)
	if owner == nil {
		return resource.None
	}
	name := strings.ToLower(owner.Kind)
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group != "" {
		name += "." + gv.Group
	}
	return name + "/" + owner.Name
}
