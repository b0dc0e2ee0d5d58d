package v1alpha1

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDefinitionsMatchTypes: the schema of each definition has the fields of the Go type, no more and no fewer.
func TestDefinitionsMatchTypes(t *testing.T) {
	definitions, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]reflect.Type{"NodeGroup": reflect.TypeFor[NodeGroupSpec](), "PodBehavior": reflect.TypeFor[PodBehaviorSpec]()}
	for _, d := range definitions {
		kind, _, _ := unstructured.NestedString(d.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		if len(versions) != 1 || kinds[kind] == nil {
			t.Fatalf("%s: %d versions of kind %q", d.GetName(), len(versions), kind)
		}
		spec, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec")
		if !ok || err != nil {
			t.Fatalf("%s has no schema: %v", kind, err)
		}
		compareFields(t, kind+".spec", spec, kinds[kind])
		delete(kinds, kind)
	}
	if len(kinds) > 0 {
		t.Errorf("no definition of %v", kinds)
	}
}

func compareFields(t *testing.T, path string, schema map[string]any, goType reflect.Type) {
	t.Helper()
	for goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	if goType.Kind() == reflect.Slice {
		items, _ := schema["items"].(map[string]any)
		if schema["type"] != "array" || items == nil {
			t.Errorf("%s: is %v, want an array", path, schema["type"])
			return
		}
		compareFields(t, path+"[]", items, goType.Elem())
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	if goType.Kind() != reflect.Struct || !strings.Contains(goType.PkgPath(), "bayplan") {
		return
	}
	for i := range goType.NumField() {
		field := goType.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner, ok := properties[name].(map[string]any)
		if !ok {
			t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		compareFields(t, path+"."+name, inner, field.Type)
		delete(properties, name)
	}
	for name := range properties {
		t.Errorf("%s.%s is not in the type", path, name)
	}
}
