package resource

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Storage is the storage of a resource: the library's registry with the names that discovery shows.
type Storage struct {
	*genericregistry.Store
	shortNames, categories []string
}

// ShortNames implements rest.ShortNamesProvider.
func (s *Storage) ShortNames() []string { return s.shortNames }

// Categories implements rest.CategoriesProvider.
func (s *Storage) Categories() []string { return s.categories }

// Install implements Description.
func (k *Kind[T]) Install(env Environment) (map[string]rest.Storage, error) {
	if k.installed != nil {
		return k.installed, nil
	}
	store, err := k.store(env)
	if err != nil {
		return nil, fmt.Errorf("storage of %s: %w", k.Resource, err)
	}
	main := &Storage{Store: store, shortNames: k.ShortNames, categories: k.Categories}
	storage := map[string]rest.Storage{k.Resource: main}
	if k.Wrap != nil {
		storage[k.Resource] = k.Wrap(main)
	}
	if k.HasStatus {
		storage[k.Resource+"/status"] = view(store, statusStrategy[T]{k.strategy(env)})
	}
	for name, sub := range k.Subs {
		storage[k.Resource+"/"+name] = view(store, subStrategy[T]{k.strategy(env), sub})
	}
	if k.Scale != nil {
		storage[k.Resource+"/scale"] = &scaleStorage[T]{store: store, kind: k, version: env.Version}
	}
	if k.Extra != nil {
		extra, err := k.Extra(env, store)
		if err != nil {
			return nil, fmt.Errorf("sub-resources of %s: %w", k.Resource, err)
		}
		for name, s := range extra {
			storage[k.Resource+"/"+name] = s
		}
	}
	k.installed, k.registry = storage, store
	return storage, nil
}

func (k *Kind[T]) strategy(env Environment) strategy[T] {
	return strategy[T]{
		ObjectTyper: env.Scheme, NameGenerator: names.SimpleNameGenerator, kind: k, versions: append([]schema.GroupVersion{env.Version}, k.Versions...),
	}
}

func (k *Kind[T]) store(env Environment) (*genericregistry.Store, error) {
	s := k.strategy(env)
	resource := env.Version.WithResource(k.Resource).GroupResource()
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return k.New() },
		NewListFunc:               k.NewList,
		PredicateFunc:             k.predicate,
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: env.Version.WithResource(k.singular(env)).GroupResource(),
		CreateStrategy:            s,
		UpdateStrategy:            s,
		DeleteStrategy:            s,
		ResetFieldsStrategy:       s,
		TableConvertor:            k,
	}
	if k.GracefulDelete != nil {
		store.DeleteStrategy = gracefulStrategy[T]{s}
	}
	if k.TTL > 0 {
		store.TTLFunc = k.ttl
	}
	if k.KeepUntil != nil {
		store.ShouldDeleteDuringUpdate = func(ctx context.Context, key string, obj, existing runtime.Object) bool {
			return genericregistry.ShouldDeleteDuringUpdate(ctx, key, obj, existing) && !k.KeepUntil(obj.(T))
		}
	}
	err := store.CompleteWithOptions(&generic.StoreOptions{
		RESTOptions: env.Options,
		AttrFunc:    k.attributes,
		TriggerFunc: k.triggers(),
		Indexers:    k.indexers(),
	})
	if err != nil || k.Adjust == nil {
		return store, err
	}
	return store, k.Adjust(env, store)
}

func (k *Kind[T]) singular(env Environment) string {
	if k.Singular != "" {
		return k.Singular
	}
	return strings.ToLower(k.groupKind(env).Kind)
}

// ttl keeps the time that an existing object has left: an update does not prolong its life.
func (k *Kind[T]) ttl(_ runtime.Object, existing uint64, update bool) (uint64, error) {
	if update && existing > 0 {
		return existing, nil
	}
	return k.TTL, nil
}

// viewStrategy is the strategy of a sub-resource.
type viewStrategy interface {
	rest.RESTUpdateStrategy
	rest.ResetFieldsStrategy
}

// view shows the objects of a registry through writes to a part of them alone.
func view(store *genericregistry.Store, s viewStrategy) rest.Storage {
	shown := *store
	shown.UpdateStrategy, shown.ResetFieldsStrategy = s, s
	return &viewStorage{store: &shown}
}

type viewStorage struct{ store *genericregistry.Store }

func (s *viewStorage) New() runtime.Object { return s.store.New() }

// Destroy leaves the storage to the resource itself, which shares it.
func (s *viewStorage) Destroy() {}

func (s *viewStorage) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, options)
}

func (s *viewStorage) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, create, update, false, options)
}

func (s *viewStorage) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

func (s *viewStorage) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return s.store.ConvertToTable(ctx, obj, options)
}
