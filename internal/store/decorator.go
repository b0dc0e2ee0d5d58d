package store

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher"
	"k8s.io/apiserver/pkg/storage/etcd3"
	etcdfeature "k8s.io/apiserver/pkg/storage/feature"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/client-go/tools/cache"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// readyPatience bounds how long ReadyDecorator waits. A store that answers takes milliseconds.
const readyPatience = time.Second

// ReadyDecorator is Decorator for storage that is made while the server runs: it waits until the watch cache has its objects. Who came earlier would be told to
// come again (429), which some do not.
func (s *Store) ReadyDecorator() generic.StorageDecorator {
	return s.decorator(func(cached *cacher.Cacher) {
		ctx, cancel := context.WithTimeout(context.Background(), readyPatience)
		defer cancel()
		_ = cached.Wait(ctx) // then they are told after all
	})
}

// Decorator returns the function by which a registry makes the storage of its resource.
func (s *Store) Decorator() generic.StorageDecorator { return s.decorator(func(*cacher.Cacher) {}) }

// decorator calls made with each watch cache that it makes.
func (s *Store) decorator(made func(*cacher.Cacher)) generic.StorageDecorator {
	s.checkFeatures()
	return func(config *storagebackend.ConfigForResource, resourcePrefix string,
		keyFunc func(runtime.Object) (string, error), newFunc, newListFunc func() runtime.Object,
		attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		raw, err := s.raw(config, resourcePrefix, newFunc, newListFunc)
		if err != nil {
			return nil, nil, err
		}
		cached, err := cacher.NewCacherFromConfig(cacher.Config{
			Storage:             raw,
			Versioner:           storage.APIObjectVersioner{},
			GroupResource:       config.GroupResource,
			EventsHistoryWindow: config.EventsHistoryWindow,
			ResourcePrefix:      resourcePrefix,
			KeyFunc:             keyFunc,
			NewFunc:             newFunc,
			NewListFunc:         newListFunc,
			GetAttrsFunc:        attrs,
			IndexerFuncs:        triggers,
			Indexers:            indexers,
			Codec:               config.Codec,
		})
		if err != nil {
			raw.Close()
			return nil, nil, err
		}
		made(cached)
		delegator := cacher.NewCacheDelegator(cached, raw)
		var once sync.Once
		return delegator, func() {
			once.Do(func() { delegator.Stop(); cached.Stop(); raw.Close() })
		}, nil
	}
}

// closer is what the concrete etcd3 store has beyond storage.Interface.
type closer interface {
	storage.Interface
	Close()
}

func (s *Store) raw(config *storagebackend.ConfigForResource, resourcePrefix string, newFunc, newListFunc func() runtime.Object) (closer, error) {
	transformer := config.Transformer
	if transformer == nil {
		transformer = identity.NewEncryptCheckTransformer()
	}
	versioner := storage.APIObjectVersioner{}
	return etcd3.New(s.clientOf(config.GroupResource), s.compactor, config.Codec, newFunc, newListFunc, config.Prefix, resourcePrefix,
		config.GroupResource, transformer, config.LeaseManagerConfig, etcd3.NewDefaultDecoder(config.Codec, versioner), versioner)
}

func (s *Store) checkFeatures() {
	checker := etcdfeature.DefaultFeatureSupportChecker
	if s.external {
		checker.CheckClient(s.client.Ctx(), s.client.Client, storage.RequestWatchProgress)
		return
	}
	checker.CheckClient(context.Background(), embeddedVersion{}, storage.RequestWatchProgress)
}

// embeddedVersion answers the library's question whether every etcd behind the API server can report progress on watches. It asks by
// endpoint, and the etcd of this process has none.
type embeddedVersion struct{}

func (embeddedVersion) Endpoints() []string { return []string{"embedded"} }

func (embeddedVersion) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Version: version.Version}, nil
}
