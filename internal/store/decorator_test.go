package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"
)

// newStorage is the storage of ConfigMaps under the name of another resource.
func newStorage(t *testing.T, decorate generic.StorageDecorator, group string) storage.Interface {
	t.Helper()
	config := storagebackend.NewDefaultConfig(Prefix, scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion))
	resource := schema.GroupResource{Group: group, Resource: "things"}
	prefix := "/" + resource.Group + "/things"
	kept, destroy, err := decorate(config.ForResource(resource), prefix,
		func(obj runtime.Object) (string, error) { return storage.NoNamespaceKeyFunc(prefix, obj) },
		func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} },
		func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(destroy)
	return kept
}

// TestReadyDecorator: storage that is made while the server runs answers at once.
func TestReadyDecorator(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(s.Close)
	decorate := s.ReadyDecorator()
	for i := range 20 {
		if err := newStorage(t, decorate, fmt.Sprintf("group%d.example.com", i)).ReadinessCheck(); err != nil {
			t.Errorf("storage %d: %v", i, err)
		}
	}
}

// TestQuietStore: lists that must be current are answered while nobody writes, however many caches were made since the last write. The library waits for three seconds.
func TestQuietStore(t *testing.T) {
	s := open(t, t.TempDir())
	t.Cleanup(s.Close)
	decorate := s.ReadyDecorator()
	var all []storage.Interface
	for i := range 5 {
		put(t, s, "something", "else")
		all = append(all, newStorage(t, decorate, fmt.Sprintf("group%d.example.com", i)))
	}
	for i, kept := range all {
		list := &corev1.ConfigMapList{}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err := kept.GetList(ctx, fmt.Sprintf("/group%d.example.com/things", i), storage.ListOptions{Predicate: storage.Everything, Recursive: true}, list)
		cancel()
		if err != nil {
			t.Errorf("storage %d: %v", i, err)
		}
	}
}
