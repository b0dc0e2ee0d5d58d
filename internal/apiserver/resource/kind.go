// Package resource turns the description of a kind into everything that the API server needs of it: storage, strategies for create, update and
// delete, defaults, validation, field selectors, table columns and sub-resources.
//
// A Kind is one value in one file of the folder of its group. What is the same for all kinds is here and is derived from the shape that
// all Kubernetes types share: ObjectMeta, Spec, Status. What differs is a field of the Kind; a field that is not set means the usual thing.
//
//	Kind ──► Install ──► registry.Store ("pods") and, with Status, a second view of it ("pods/status")
//	     └─► Register ──► defaults and field labels in the scheme
package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Object is what every kind's Go type is.
type Object interface {
	runtime.Object
	metav1.Object
}

// Kind describes one kind; T is a pointer to its Go type in k8s.io/api.
type Kind[T Object] struct {
	// Resource is the plural name in paths, Singular defaults to the lower-case kind.
	Resource, Singular string
	ShortNames         []string
	// Categories such as "all" are names under which kubectl lists several resources.
	Categories  []string
	ClusterWide bool
	New         func() T
	NewList     func() runtime.Object

	// Default fills in what a client left out; it runs when an object is decoded.
	Default func(T)
	// ValidateName checks metadata.name (and generateName as its prefix); a DNS subdomain unless set.
	ValidateName   func(name string, prefix bool) []string
	Validate       func(T) field.ErrorList
	ValidateUpdate func(obj, old T) field.ErrorList
	ValidateStatus func(obj, old T) field.ErrorList
	Warnings       func(T) []string

	// PrepareCreate and PrepareUpdate set what clients do not decide. Status is already cleared, or kept.
	PrepareCreate func(ctx context.Context, obj T)
	PrepareUpdate func(ctx context.Context, obj, old T)
	PrepareStatus func(ctx context.Context, obj, old T)

	// HasStatus: writes to the resource leave status alone, and writes to its sub-resource "status" leave all else alone.
	HasStatus bool
	// CreateWithStatus keeps the status that a client gives when it creates the object.
	CreateWithStatus bool
	// Generation: metadata.generation counts the changes of what is neither metadata nor status.
	Generation bool
	// StatusKeepsLabels: a write to status does not change labels.
	StatusKeepsLabels bool

	// AllowCreateOnUpdate: PUT to a name that does not exist creates it.
	AllowCreateOnUpdate bool
	// RequireResourceVersion: PUT must name the version that it replaces.
	RequireResourceVersion bool

	// OrphanByDefault: a deletion that says nothing of dependents leaves them alone.
	OrphanByDefault bool

	// Fields are the field selectors beyond metadata.name and metadata.namespace.
	Fields map[string]func(T) string
	// FieldAliases are other names of Fields, as other versions of the API have them.
	FieldAliases map[string]string
	// Index is the one of Fields by which the watch cache sorts watchers, so that a change wakes only those whom it concerns.
	Index string
	// Columns of `kubectl get`, after NAME (unless HideName).
	Columns  []Column[T]
	HideName bool
	// NameText is what the column NAME shows, where that is more than the name.
	NameText func(T) string

	// TTL is how long an object lives, in seconds.
	TTL uint64
	// GracefulDelete decides on the grace period; nil deletes at once.
	GracefulDelete func(obj T, options *metav1.DeleteOptions) bool
	// KeepUntil reports true while an object without finalizers must stay, although its deletion was asked for (a namespace with spec.finalizers).
	KeepUntil func(T) bool

	// Scale maps the kind to autoscaling/v1 Scale; nil has no such sub-resource.
	Scale *Scale[T]
	// Subs are sub-resources that write a part of the object, by their name, for example "approval".
	Subs map[string]Sub[T]
	// Adjust completes the registry, for example by what must happen before an object is created.
	Adjust func(env Environment, store *genericregistry.Store) error
	// Wrap puts other behaviour around the resource's storage.
	Wrap func(*Storage) rest.Storage
	// Extra adds sub-resources by their name, for example "binding".
	Extra func(env Environment, store *genericregistry.Store) (map[string]rest.Storage, error)

	// Versions are further versions of the API, beside the one whose group the kind stands in first, under which the same storage is served. The names of their
	// fields at the top are the same.
	Versions []schema.GroupVersion

	// installed is what Install made: a kind that stands in several groups has one storage.
	installed map[string]rest.Storage
	registry  *genericregistry.Store
}

// Description is a Kind with its type forgotten, so that kinds of all types stand in one list.
type Description interface {
	// Name is the plural resource name.
	Name() string
	// Register puts defaults and field labels into the scheme.
	Register(scheme *runtime.Scheme, version schema.GroupVersion) error
	// Install makes the storage of the resource and its sub-resources, by path ("pods", "pods/status").
	Install(env Environment) (map[string]rest.Storage, error)
}

// Environment is what a kind's storage is built from.
type Environment struct {
	Scheme  *runtime.Scheme
	Version schema.GroupVersion
	Options generic.RESTOptionsGetter
}

// Group is one version of an API group with its kinds.
type Group struct {
	schema.GroupVersion
	AddToScheme func(*runtime.Scheme) error
	Kinds       []Description
	// Hub are the Go types that stand for kinds of this version inside the server where that is not the version's own type: those of another version, with
	// which it shares its storage. AddToScheme then registers the conversions.
	Hub map[string]runtime.Object
}

// Store makes the registry of the kind, or returns the one that is there: so one kind uses another, which may be of another group.
func (k *Kind[T]) Store(env Environment, version schema.GroupVersion) (*genericregistry.Store, error) {
	env.Version = version
	if _, err := k.Install(env); err != nil {
		return nil, err
	}
	return k.registry, nil
}

// Name implements Description.
func (k *Kind[T]) Name() string { return k.Resource }

func (k *Kind[T]) groupKind(env Environment) schema.GroupVersionKind {
	kinds, _, err := env.Scheme.ObjectKinds(k.New())
	if err != nil {
		return schema.GroupVersionKind{}
	}
	for _, gvk := range kinds {
		if gvk.GroupVersion() == env.Version {
			return gvk
		}
	}
	return schema.GroupVersionKind{}
}
