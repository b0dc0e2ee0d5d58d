package apiserver

import (
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// scheme is all that the server knows of types. The published, versioned Go types serve as the internal ("hub") types too, so that no conversion code
// is needed: conversion between a type and itself is the identity.
type scheme struct {
	*runtime.Scheme
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
	// described has the versioned types only: descriptions of the API must not speak of internal ones.
	described *runtime.Scheme
}

func newScheme(groups []resource.Group) (*scheme, error) {
	s := &scheme{Scheme: runtime.NewScheme(), described: runtime.NewScheme()}
	for _, target := range []*runtime.Scheme{s.Scheme, s.described} {
		if err := addVersioned(target, groups); err != nil {
			return nil, err
		}
	}
	if err := metainternal.AddToScheme(s.Scheme); err != nil {
		return nil, err
	}
	if err := relay.RegisterOptions(s.Scheme); err != nil {
		return nil, err
	}
	for _, group := range groups {
		if err := s.addHub(group); err != nil {
			return nil, err
		}
	}
	s.codecs = serializer.NewCodecFactory(s.Scheme)
	s.parameters = runtime.NewParameterCodec(s.Scheme)
	return s, nil
}

func addVersioned(s *runtime.Scheme, groups []resource.Group) error {
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	unversioned := schema.GroupVersion{Version: "v1"}
	s.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	// Scale is a sub-resource of many groups.
	if err := autoscalingv1.AddToScheme(s); err != nil {
		return err
	}
	versions := map[string][]schema.GroupVersion{}
	for _, group := range groups {
		if err := group.AddToScheme(s); err != nil {
			return err
		}
		// Of several versions of a group the one that is listed first is preferred, and stored.
		versions[group.Group] = append(versions[group.Group], group.GroupVersion)
		if err := s.SetVersionPriority(versions[group.Group]...); err != nil {
			return err
		}
	}
	return nil
}

// addHub registers the types of a group as its internal version, after they were registered as the external one: decoders take the first as the
// source of defaults.
func (s *scheme) addHub(group resource.Group) error {
	hub := schema.GroupVersion{Group: group.Group, Version: runtime.APIVersionInternal}
	for kind, t := range s.KnownTypes(group.GroupVersion) {
		// A kind that a preferred version has too is known inside the server by that version's type.
		if isMetaType(t.PkgPath()) || s.Recognizes(hub.WithKind(kind)) {
			continue
		}
		obj, err := s.New(group.WithKind(kind))
		if err != nil {
			return err
		}
		if other, ok := group.Hub[kind]; ok {
			obj = other
		}
		s.AddKnownTypeWithName(hub.WithKind(kind), obj)
	}
	for _, kind := range group.Kinds {
		if err := kind.Register(s.Scheme, group.GroupVersion); err != nil {
			return err
		}
	}
	return nil
}

// isMetaType: ListOptions, WatchEvent and the like are registered in every group and need no hub.
func isMetaType(pkg string) bool { return pkg == "k8s.io/apimachinery/pkg/apis/meta/v1" }

// Convert implements runtime.ObjectConvertor. A type is its own hub, so that an object may have to be "converted" into another of the same type (what admission webhooks
// changed, for example): it is then copied.
func (s *scheme) Convert(in, out, context any) error {
	from, to := reflect.ValueOf(in), reflect.ValueOf(out)
	if object, ok := in.(runtime.Object); ok && from.Type() == to.Type() && !isUnstructured(in) {
		to.Elem().Set(reflect.ValueOf(object.DeepCopyObject()).Elem())
		return nil
	}
	return s.Scheme.Convert(in, out, context)
}

func isUnstructured(object any) bool {
	_, ok := object.(runtime.Unstructured)
	return ok
}
