package resource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/tools/cache"
)

// Register implements Description.
func (k *Kind[T]) Register(scheme *runtime.Scheme, version schema.GroupVersion) error {
	k.registerDefaults(scheme)
	gvks, _, err := scheme.ObjectKinds(k.New())
	if err != nil {
		return err
	}
	for _, gvk := range gvks {
		if gvk.Group == version.Group {
			return scheme.AddFieldLabelConversionFunc(version.WithKind(gvk.Kind), k.convertFieldLabel)
		}
	}
	return fmt.Errorf("%T is not of group %q", k.New(), version.Group)
}

// registerDefaults also covers the list type: lists that are decoded hold items that want their defaults.
func (k *Kind[T]) registerDefaults(scheme *runtime.Scheme) {
	if k.Default == nil {
		return
	}
	scheme.AddTypeDefaultingFunc(k.New(), func(obj any) { k.Default(obj.(T)) })
	list := k.NewList()
	scheme.AddTypeDefaultingFunc(list, func(obj any) {
		_ = meta.EachListItem(obj.(runtime.Object), func(item runtime.Object) error {
			k.Default(item.(T))
			return nil
		})
	})
}

func (k *Kind[T]) convertFieldLabel(label, value string) (string, string, error) {
	if label == "metadata.name" || !k.ClusterWide && label == "metadata.namespace" {
		return label, value, nil
	}
	if _, ok := k.Fields[label]; ok {
		return label, value, nil
	}
	if known, ok := k.FieldAliases[label]; ok {
		return known, value, nil
	}
	supported := append([]string{"metadata.name"}, slices.Sorted(maps.Keys(k.Fields))...)
	if !k.ClusterWide {
		supported = slices.Insert(supported, 1, "metadata.namespace")
	}
	return "", "", fmt.Errorf("field label not supported: %s (%s can be selected by %s)", label, k.Resource, strings.Join(supported, ", "))
}

// attributes gives the labels and fields of an object, by which selectors choose.
func (k *Kind[T]) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	object, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("%T is not a %T", obj, *new(T))
	}
	set := make(fields.Set, len(k.Fields)+2)
	set["metadata.name"] = object.GetName()
	if !k.ClusterWide {
		set["metadata.namespace"] = object.GetNamespace()
	}
	for label, value := range k.Fields {
		set[label] = value(object)
	}
	return object.GetLabels(), set, nil
}

func (k *Kind[T]) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	p := storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
	if k.Index != "" {
		p.IndexFields = []string{k.Index}
	}
	return p
}

func (k *Kind[T]) triggers() storage.IndexerFuncs {
	if k.Index == "" {
		return nil
	}
	value := k.Fields[k.Index]
	return storage.IndexerFuncs{k.Index: func(obj runtime.Object) string { return value(obj.(T)) }}
}

func (k *Kind[T]) indexers() *cache.Indexers {
	if k.Index == "" {
		return nil
	}
	value := k.Fields[k.Index]
	return &cache.Indexers{storage.FieldIndex(k.Index): func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("%T is not a %T", obj, *new(T))
		}
		return []string{value(object)}, nil
	}}
}
