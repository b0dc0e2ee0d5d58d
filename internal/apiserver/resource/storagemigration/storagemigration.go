// Package storagemigration describes the kinds of the group storagemigration.k8s.io.
package storagemigration

import (
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: storagemigrationv1.SchemeGroupVersion,
		AddToScheme:  storagemigrationv1.AddToScheme,
		Kinds:        []resource.Description{storageVersionMigration()},
	}
}

func storageVersionMigration() *resource.Kind[*storagemigrationv1.StorageVersionMigration] {
	path := field.NewPath("spec", "resource")
	validate := func(m *storagemigrationv1.StorageVersionMigration) field.ErrorList {
		errs := rules.Required(m.Spec.Resource.Resource, path.Child("resource"))
		if m.Spec.Resource.Group != "" {
			errs = append(errs, rules.Subdomain(m.Spec.Resource.Group, path.Child("group"))...)
		}
		return errs
	}
	return &resource.Kind[*storagemigrationv1.StorageVersionMigration]{
		Resource:    "storageversionmigrations",
		ClusterWide: true,
		HasStatus:   true,
		New: func() *storagemigrationv1.StorageVersionMigration {
			return &storagemigrationv1.StorageVersionMigration{}
		},
		NewList:  func() runtime.Object { return &storagemigrationv1.StorageVersionMigrationList{} },
		Validate: validate,
		ValidateUpdate: func(m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
			return append(validate(m), rules.Unchanged(m.Spec.Resource, old.Spec.Resource, path)...)
		},
		ValidateStatus: func(m, _ *storagemigrationv1.StorageVersionMigration) field.ErrorList {
			return rules.Conditions(m.Status.Conditions, field.NewPath("status", "conditions"))
		},
		Columns: []resource.Column[*storagemigrationv1.StorageVersionMigration]{
			{Name: "Resource", Description: "The resource whose objects are written anew.", Value: func(m *storagemigrationv1.StorageVersionMigration) any {
				r := m.Spec.Resource
				if r.Group == "" {
					return r.Resource
				}
				return r.Resource + "." + r.Group
			}},
			resource.Age[*storagemigrationv1.StorageVersionMigration](),
		},
	}
}
