package apiserver_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

func resourceOf(text string) schema.GroupVersionResource {
	parts := append(strings.SplitN(text, ".", 3), "", "")
	if parts[0] == "crd" {
		return definitions
	}
	return schema.GroupVersionResource{Resource: parts[0], Version: parts[1], Group: parts[2]}
}

func (s *script) client(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	if s.cluster[gvr.GroupResource()] {
		return s.dynamic.Resource(gvr)
	}
	return s.dynamic.Resource(gvr).Namespace("default")
}

func (s *script) parse(text string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	must(s.t, yaml.Unmarshal([]byte(text), &obj.Object))
	return obj
}

// show is an object without what the server sets in every object.
func (s *script) show(obj *unstructured.Unstructured, err error) (string, error) {
	if err != nil {
		return "", err
	}
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "creationTimestamp", "namespace"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	text, err := yaml.Marshal(obj.Object)
	return string(text), err
}

func (s *script) define(input string) (string, error) {
	crd := s.parse("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" + input)
	scope, _, _ := unstructured.NestedString(crd.Object, "spec", "scope")
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	s.cluster[schema.GroupResource{Group: group, Resource: plural}] = scope == string(apiextensionsv1.ClusterScoped)
	if _, err := s.dynamic.Resource(definitions).Create(s.t.Context(), crd, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	_, err := s.conditions(crd.GetName(), "Established=True")
	return "", err
}

// conditions lists the conditions of a definition when it has the one that is waited for.
func (s *script) conditions(name, wanted string) (string, error) {
	watcher, err := s.dynamic.Resource(definitions).Watch(s.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return "", err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		var text []string
		found := false
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return "", fmt.Errorf("watch: %v", event.Object)
		}
		list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, item := range list {
			c := item.(map[string]any)
			found = found || fmt.Sprintf("%v=%v", c["type"], c["status"]) == wanted
			text = append(text, fmt.Sprintf("%v=%v %v: %v", c["type"], c["status"], c["reason"], c["message"]))
		}
		if found {
			return strings.Join(text, "\n"), nil
		}
	}
	return "", fmt.Errorf("no condition %s of %s", wanted, name)
}

func (s *script) table(gvr schema.GroupVersionResource) (string, error) {
	config := dynamic.ConfigFor(s.config)
	gv := gvr.GroupVersion()
	config.GroupVersion, config.APIPath = &gv, "/apis"
	client, err := rest.RESTClientFor(config)
	must(s.t, err)
	data, err := client.Get().NamespaceIfScoped("default", !s.cluster[gvr.GroupResource()]).Resource(gvr.Resource).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(s.t.Context()).Raw()
	if err != nil {
		return "", err
	}
	table := &metav1.Table{}
	must(s.t, json.Unmarshal(data, table))
	var out strings.Builder
	for _, column := range table.ColumnDefinitions {
		fmt.Fprintf(&out, "%s(%s,%d) ", column.Name, cmp.Or(column.Format, column.Type), column.Priority)
	}
	for _, row := range table.Rows {
		fmt.Fprintf(&out, "\n%s", asJSON(s.t, row.Cells))
	}
	return out.String(), nil
}
