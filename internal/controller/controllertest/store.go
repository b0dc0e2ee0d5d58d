package controllertest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// object is a stored object. Stored ones are never changed, only replaced.
type object = unstructured.Unstructured

// event is a change as watches see it.
type event struct {
	kind    watch.EventType
	before  *object // the state before, for selectors; nil for additions
	object  *object
	version int64
}

// table is the objects of one resource, with the history that watches resume from.
type table struct {
	objects  map[string]*object
	history  []event
	watchers map[*watcher]bool
}

func objectKey(namespace, name string) string { return namespace + "/" + name }

func (a *API) table(gvr schema.GroupVersionResource) *table {
	t := a.tables[gvr]
	if t == nil {
		t = &table{objects: map[string]*object{}, watchers: map[*watcher]bool{}}
		a.tables[gvr] = t
	}
	return t
}

func (t *table) get(namespace, name string) *object { return t.objects[objectKey(namespace, name)] }

// list returns the objects of a namespace, or of all, in the order of their keys.
func (t *table) list(namespace string) []*object {
	var out []*object
	for _, o := range t.objects {
		if namespace == "" || o.GetNamespace() == namespace {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(x, y *object) int {
		return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
	})
	return out
}

// put stores a new state, or removes the object when nothing holds it any more, and tells the watches.
func (a *API) put(r Resource, o *object) {
	t := a.table(r.GroupVersionResource)
	key := objectKey(o.GetNamespace(), o.GetName())
	before := t.objects[key]
	a.version++
	o.SetResourceVersion(strconv.FormatInt(a.version, 10))
	e := event{kind: watch.Added, before: before, object: o, version: a.version}
	switch {
	case released(r, o):
		delete(t.objects, key)
		e.kind = watch.Deleted
		if before == nil {
			return
		}
	case before != nil:
		e.kind = watch.Modified
		fallthrough
	default:
		t.objects[key] = o
	}
	t.history = append(t.history, e)
	for w := range t.watchers {
		w.send(e)
	}
}

// released tells whether an object that is being deleted can go.
func released(r Resource, o *object) bool {
	if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) > 0 {
		return false
	}
	if r.Resource == "namespaces" {
		finalizers, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
		return len(finalizers) == 0
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// stamp gives a new object what the API server gives it.
func (a *API) stamp(r Resource, o *object, agent string) {
	o.SetGroupVersionKind(r.GVK())
	o.SetCreationTimestamp(metav1.NewTime(time.Now()))
	o.SetGeneration(1)
	o.SetDeletionTimestamp(nil)
	o.SetManagedFields(nil)
	if o.GetName() == "" {
		prefix := o.GetGenerateName() + destination(o)
		a.names[prefix]++
		o.SetName(prefix + strconv.Itoa(a.names[prefix]))
	}
	// What controllers make comes in any order; UIDs must not depend on it.
	kind := "uid-"
	if agent != outside {
		kind = o.GetName() + "-"
	}
	a.uids[kind]++
	o.SetUID(types.UID(kind + strconv.Itoa(a.uids[kind])))
	switch r.Resource {
	case "pods":
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "" {
			_ = unstructured.SetNestedField(o.Object, "Pending", "status", "phase")
		}
	case "namespaces":
		_ = unstructured.SetNestedStringSlice(o.Object, []string{"kubernetes"}, "spec", "finalizers")
		_ = unstructured.SetNestedField(o.Object, "Active", "status", "phase")
	case "customresourcedefinitions":
		a.serve(o)
	}
}

// destination is a part of the name of pods that are made for one node: they are made at the same time, in any order.
func destination(o *object) string {
	var pod corev1.Pod
	if o.GetKind() != "Pod" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &pod) != nil {
		return ""
	}
	if node := target(&pod); node != "" {
		return node + "-"
	}
	return ""
}

// serve adds the resource that a CustomResourceDefinition defines.
func (a *API) serve(crd *object) {
	field := func(path ...string) string {
		s, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, path...)...)
		return s
	}
	version := "v1"
	if versions, found, _ := unstructured.NestedSlice(crd.Object, "spec", "versions"); found && len(versions) > 0 {
		version = versions[0].(map[string]any)["name"].(string)
	}
	gvr := schema.GroupVersionResource{Group: field("group"), Version: version, Resource: field("names", "plural")}
	if a.find(gvr) == nil {
		a.resources = append(a.resources, Resource{gvr, field("names", "kind"), !strings.EqualFold(field("scope"), "Cluster")})
	}
}

func (a *API) find(gvr schema.GroupVersionResource) *Resource {
	for i := range a.resources {
		if a.resources[i].GroupVersionResource == gvr {
			return &a.resources[i]
		}
	}
	return nil
}

// named finds a resource by its plural or its kind.
func (a *API) named(name string) *Resource {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.resources {
		if a.resources[i].Resource == name || strings.EqualFold(a.resources[i].Kind, name) {
			return &a.resources[i]
		}
	}
	return nil
}

// ResourceName is the name of a kind's resource with its group, as in "jobs.batch".
func (a *API) ResourceName(kind string) string {
	if r := a.named(kind); r != nil {
		return r.GroupResource().String()
	}
	return ""
}
