// Package coordination describes the kinds of the group coordination.k8s.io.
package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: coordinationv1.SchemeGroupVersion,
		AddToScheme:  coordinationv1.AddToScheme,
		Kinds:        []resource.Description{lease()},
	}
}

func lease() *resource.Kind[*coordinationv1.Lease] {
	return &resource.Kind[*coordinationv1.Lease]{
		Resource:            "leases",
		New:                 func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
		NewList:             func() runtime.Object { return &coordinationv1.LeaseList{} },
		Validate:            validateLease,
		AllowCreateOnUpdate: true,
		Columns: []resource.Column[*coordinationv1.Lease]{
			{Name: "Holder", Description: "Who holds the lease.", Value: func(l *coordinationv1.Lease) any {
				if l.Spec.HolderIdentity == nil {
					return ""
				}
				return *l.Spec.HolderIdentity
			}},
			resource.Age[*coordinationv1.Lease](),
		},
	}
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if s := l.Spec.LeaseDurationSeconds; s != nil && *s <= 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseDurationSeconds"), *s, "must be greater than 0"))
	}
	if n := l.Spec.LeaseTransitions; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(spec.Child("leaseTransitions"), *n, "must be greater than or equal to 0"))
	}
	return errs
}
