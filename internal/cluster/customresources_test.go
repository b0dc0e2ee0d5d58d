package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const shipDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: ships, kind: Ship}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	ships       = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "ships"}
)

// follower sees what happens to the objects of a resource, from what is there when it begins.
type follower struct {
	t      *testing.T
	events <-chan watch.Event
}

func follow(ctx context.Context, t *testing.T, r dynamic.ResourceInterface) *follower {
	t.Helper()
	w, err := r.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return &follower{t, w.ResultChan()}
}

// until returns when an event fits.
func (f *follower) until(what string, fits func(watch.Event) bool) {
	f.t.Helper()
	for event := range f.events {
		if fits(event) {
			return
		}
	}
	f.t.Fatalf("%s: not seen in time", what)
}

func established(event watch.Event) bool {
	obj, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}

func deleted(name string) func(watch.Event) bool {
	return func(event watch.Event) bool {
		obj, ok := event.Object.(*unstructured.Unstructured)
		return ok && event.Type == watch.Deleted && obj.GetName() == name
	}
}

func defineShips(ctx context.Context, t *testing.T, client dynamic.Interface) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(shipDefinition), &crd.Object); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	follow(ctx, t, client.Resource(definitions)).until("establishing ships", established)
}

func createShip(ctx context.Context, t *testing.T, client dynamic.Interface, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	t.Helper()
	ship := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Ship", "spec": map[string]any{"masts": int64(3)}}}
	ship.SetName(name)
	ship.SetOwnerReferences(owners)
	made, err := client.Resource(ships).Namespace(namespace).Create(ctx, ship, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestCustomResourcesOutliveARestart: definitions and their objects are there when the cluster is ready again.
func TestCustomResourcesOutliveARestart(t *testing.T) {
	config := local(t)
	c, _ := start(t, config)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := dynamic.NewForConfigOrDie(c.Admin())
	defineShips(ctx, t, client)
	made := createShip(ctx, t, client, "default", "a")
	if err := c.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	c, _ = start(t, config)
	client = dynamic.NewForConfigOrDie(c.Admin())
	got, err := client.Resource(ships).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	if err != nil || got.GetUID() != made.GetUID() || got.GetResourceVersion() != made.GetResourceVersion() {
		t.Errorf("after a restart: %v, %v; want %v", got, err, made)
	}
	createShip(ctx, t, client, "default", "b")
	// With the definition its objects go.
	objects, kinds := follow(ctx, t, client.Resource(ships)), follow(ctx, t, client.Resource(definitions))
	if err := client.Resource(definitions).Delete(ctx, "ships.example.org", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{"a": true, "b": true}
	objects.until("the end of all ships", func(event watch.Event) bool {
		if obj, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Deleted {
			delete(left, obj.GetName())
		}
		return len(left) == 0
	})
	kinds.until("the definition's end", deleted("ships.example.org"))
	if _, err := client.Resource(ships).List(ctx, metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("without the definition: %v", err)
	}
}

// TestCustomResourcesAreCollected: the controllers learn of new kinds: an object goes with its owner, built-in or custom, and with its namespace.
func TestCustomResourcesAreCollected(t *testing.T) {
	c, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	custom := dynamic.NewForConfigOrDie(c.Admin())
	defineShips(ctx, t, custom)
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "port"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	flag := createShip(ctx, t, custom, "port", "flagship")
	flag.SetGroupVersionKind(ships.GroupVersion().WithKind("Ship"))
	owned := metav1.OwnerReference{APIVersion: "example.org/v1", Kind: "Ship", Name: flag.GetName(), UID: flag.GetUID()}
	createShip(ctx, t, custom, "port", "boat", owned)
	createShip(ctx, t, custom, "port", "stays")
	cargo := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cargo", OwnerReferences: []metav1.OwnerReference{owned}}}
	if _, err := client.CoreV1().ConfigMaps("port").Create(ctx, cargo, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	objects := follow(ctx, t, custom.Resource(ships).Namespace("port"))
	maps := follow(ctx, t, custom.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("port"))
	if err := custom.Resource(ships).Namespace("port").Delete(ctx, "flagship", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	objects.until("the end of the custom dependent", deleted("boat"))
	maps.until("the end of the built-in dependent", deleted("cargo"))
	namespaces := follow(ctx, t, custom.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")))
	if err := client.CoreV1().Namespaces().Delete(ctx, "port", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	namespaces.until("the namespace's end", deleted("port"))
	list, err := custom.Resource(ships).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) > 0 {
		t.Errorf("after its namespace: %v, %v", list, err)
	}
}

// TestCustomResourcesOfTwoServers: a definition is established only when every server knows it, so that what is then created by one can be created by all.
func TestCustomResourcesOfTwoServers(t *testing.T) {
	etcd, keys := externalEtcd(t), t.TempDir()
	server := func() dynamic.Interface {
		config := local(t)
		config.Etcd, config.PKIDir, config.Controllers, config.NoScheduler = etcd, keys, APIControllers(), true
		c, _ := start(t, config)
		return dynamic.NewForConfigOrDie(c.Admin())
	}
	a, b := server(), server()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	defineShips(ctx, t, a)
	made := createShip(ctx, t, b, "default", "a")
	got, err := a.Resource(ships).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
	if err != nil || got.GetUID() != made.GetUID() {
		t.Errorf("the other server's ship: %v, %v", got, err)
	}
}
