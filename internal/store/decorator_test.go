package store

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestReadyDecorator: storage that is made while the server runs answers at once.
func TestReadyDecorator(t *testing.T) {
	s := open(t, t.TempDir())
	defer s.Close()
	decorate := s.ReadyDecorator()
	config := storagebackend.NewDefaultConfig(Prefix, scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion))
	for i := range 20 {
		resource := schema.GroupResource{Group: fmt.Sprintf("group%d.example.com", i), Resource: "things"}
		prefix := "/" + resource.Group + "/things"
		kept, destroy, err := decorate(config.ForResource(resource), prefix,
			func(obj runtime.Object) (string, error) { return storage.NoNamespaceKeyFunc(prefix, obj) },
			func() runtime.Object { return &corev1.ConfigMap{} }, func() runtime.Object { return &corev1.ConfigMapList{} },
			func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := kept.ReadinessCheck(); err != nil {
			t.Errorf("storage %d: %v", i, err)
		}
		destroy()
	}
}
