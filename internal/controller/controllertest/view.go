package controllertest

import (
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// view is what a request selects and in which form it wants it.
type view struct {
	namespace    string
	labels       labels.Selector
	fields       fields.Selector
	metadataOnly bool
}

func newView(req *http.Request, _ Resource, namespace string) view {
	q := req.URL.Query()
	v := view{namespace: namespace, labels: labels.Everything(), fields: fields.Everything()}
	if selector, err := labels.Parse(q.Get("labelSelector")); err == nil {
		v.labels = selector
	}
	if selector, err := fields.ParseSelector(q.Get("fieldSelector")); err == nil {
		v.fields = selector
	}
	v.metadataOnly = strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	return v
}

func (v view) matches(o *object) bool {
	if v.namespace != "" && v.namespace != o.GetNamespace() {
		return false
	}
	return v.labels.Matches(labels.Set(o.GetLabels())) && v.fields.Matches(fieldsOf(o))
}

func fieldsOf(o *object) fields.Set {
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	kind, _, _ := unstructured.NestedString(o.Object, "type")
	return fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace(), "spec.nodeName": node, "status.phase": phase, "type": kind}
}

// show is the object in the form that was asked for.
func (v view) show(o *object) any {
	if !v.metadataOnly {
		return o.Object
	}
	return map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.Object["metadata"]}
}

// list is a list of objects in the form that was asked for.
func (v view) list(r Resource, objects []*object, version string) any {
	items := []any{}
	for _, o := range objects {
		if v.matches(o) {
			items = append(items, v.show(o))
		}
	}
	out := map[string]any{
		"apiVersion": r.GroupVersion().String(), "kind": r.Kind + "List",
		"metadata": map[string]any{"resourceVersion": version}, "items": items,
	}
	if v.metadataOnly {
		out["apiVersion"], out["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	return out
}

func parseVersion(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
