package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const cars = `
metadata: {name: cars.transport.example.org}
spec:
  group: transport.example.org
  scope: Namespaced
  names: {plural: cars, singular: car, kind: Car, shortNames: [c], categories: [vehicles]}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {wheels: {type: integer, description: How many., default: 4}}}}
`

const group = "transport.example.org"

// telling is a way to ask about a group; tell finds in the answer what it says, "" when the group is not there.
type telling struct {
	path, accept string
	tell         func(*testing.T, []byte) string
	want         string
}

var tellings = map[string]telling{
	"groups":  {"/apis", "application/json", inGroups, "v1 v1alpha1"},
	"group":   {"/apis/" + group, "application/json", inGroup, "v1 v1alpha1"},
	"version": {"/apis/" + group + "/v1", "application/json", inVersion, "cars/car/Car/c/vehicles cars/status//Car//"},
	"aggregated": {
		"/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", inAggregated, "v1:cars+1 v1alpha1:cars+0",
	},
	"OpenAPI v3": {"/openapi/v3/apis/" + group + "/v1", "application/json", described("components", "schemas", "org.example.transport.v1.Car"), "How many. 4"},
	"OpenAPI v2": {"/openapi/v2", "application/json", described("definitions", "org.example.transport.v1.Car"), "How many. <nil>"},
}

// TestCustomDiscovery: what is told of a custom resource, in each of the ways that clients ask, while its definition is there and when it is gone. The answers
// follow the definition a moment later.
func TestCustomDiscovery(t *testing.T) {
	a := startAPI(t)
	s := scriptOn(t, a)
	_, err := s.define(cars)
	must(t, err)
	check := func(name string, asked telling, want string) {
		t.Helper()
		var got string
		err := s.await(func(context.Context) (bool, error) {
			data, _ := a.client.Discovery().RESTClient().Get().AbsPath(asked.path).SetHeader("Accept", asked.accept).Do(t.Context()).Raw()
			got = asked.tell(t, data)
			return got == want, nil
		})
		if err != nil {
			t.Errorf("%s: %v; got %q, want %q", name, err, got, want)
		}
	}
	for name, asked := range tellings {
		check(name, asked, asked.want)
	}
	must(t, s.dynamic.Resource(definitions).Delete(t.Context(), "cars."+group, metav1.DeleteOptions{}))
	for name, asked := range tellings {
		check(name, asked, "")
	}
}

// TestDefinitionsAreDescribed: the group of definitions is told of like the built-in ones.
func TestDefinitionsAreDescribed(t *testing.T) {
	a := startAPI(t)
	groups, err := a.client.Discovery().ServerGroups()
	must(t, err)
	var last string
	for _, g := range groups.Groups {
		last = g.Name
	}
	if last != "apiextensions.k8s.io" {
		t.Errorf("the last of the groups is %s", last)
	}
	data, err := a.client.Discovery().RESTClient().Get().AbsPath("/apis/apiextensions.k8s.io/v1").Do(t.Context()).Raw()
	must(t, err)
	const want = "customresourcedefinitions/customresourcedefinition/CustomResourceDefinition/crd,crds/api-extensions customresourcedefinitions/status//CustomResourceDefinition//"
	if got := inVersion(t, data); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	const definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
	for path, where := range map[string][]string{
		"/openapi/v3/apis/apiextensions.k8s.io/v1": {"components", "schemas", definition},
		"/openapi/v2": {"definitions", definition},
	} {
		data, err := a.client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
		must(t, err)
		if _, found, _ := unstructured.NestedMap(*decode[map[string]any](t, data), where...); !found {
			t.Errorf("%s has no %s", path, definition)
		}
	}
}

// TestDefinitionOfABuiltinGroup: such a definition can be made, as in Kubernetes, and takes nothing away of what is told of the group, while it is there or when it is gone.
func TestDefinitionOfABuiltinGroup(t *testing.T) {
	a := startAPI(t)
	s := scriptOn(t, a)
	ask := func(path string) string {
		data, err := a.client.Discovery().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
		must(t, err)
		return string(data)
	}
	before := ask("/apis") + ask("/openapi/v3/apis/networking.k8s.io/v1")
	_, err := s.define(`
metadata: {name: routes.networking.k8s.io, annotations: {api-approved.kubernetes.io: "unapproved, a test"}}
spec:
  group: networking.k8s.io
  scope: Namespaced
  names: {plural: routes, kind: Route}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	must(t, err)
	// What is told follows the definitions in order: when a later one is told of, so is this one.
	_, err = s.define(cars)
	must(t, err)
	must(t, s.await(func(context.Context) (bool, error) { return inGroups(t, []byte(ask("/apis"))) != "", nil }))
	for _, name := range []string{"routes.networking.k8s.io", "cars." + group} {
		must(t, s.dynamic.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	must(t, s.await(func(context.Context) (bool, error) {
		return ask("/apis")+ask("/openapi/v3/apis/networking.k8s.io/v1") == before, nil
	}))
}

func decode[T any](t *testing.T, data []byte) *T {
	t.Helper()
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatalf("%v: %q", err, data)
	}
	return out
}

func versions(g *metav1.APIGroup) string {
	var names []string
	for _, v := range g.Versions {
		names = append(names, v.Version)
	}
	return strings.Join(names, " ")
}

func inGroups(t *testing.T, data []byte) string {
	for _, g := range decode[metav1.APIGroupList](t, data).Groups {
		if g.Name == group {
			return versions(&g)
		}
	}
	return ""
}

// Where there is no group, the answer is not JSON.
func inGroup(t *testing.T, data []byte) string {
	if !json.Valid(data) {
		return ""
	}
	return versions(decode[metav1.APIGroup](t, data))
}

func inVersion(t *testing.T, data []byte) string {
	if !json.Valid(data) {
		return ""
	}
	var all []string
	for _, r := range decode[metav1.APIResourceList](t, data).APIResources {
		all = append(all, strings.Join([]string{r.Name, r.SingularName, r.Kind, strings.Join(r.ShortNames, ","), strings.Join(r.Categories, ",")}, "/"))
	}
	return strings.Join(all, " ")
}

func inAggregated(t *testing.T, data []byte) string {
	var all []string
	for _, g := range decode[apidiscoveryv2.APIGroupDiscoveryList](t, data).Items {
		if g.Name != group {
			continue
		}
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				all = append(all, fmt.Sprintf("%s:%s+%d", v.Version, r.Resource, len(r.Subresources)))
			}
		}
	}
	return strings.Join(all, " ")
}

// described tells what OpenAPI says about the wheels of a car.
func described(definition ...string) func(*testing.T, []byte) string {
	return func(t *testing.T, data []byte) string {
		if !json.Valid(data) {
			return ""
		}
		path := append(definition, "properties", "spec", "properties", "wheels")
		wheels, found, _ := unstructured.NestedMap(*decode[map[string]any](t, data), path...)
		if !found {
			return ""
		}
		return fmt.Sprint(wheels["description"], " ", wheels["default"])
	}
}

// TestDefinitionsThatNobodyUsed: definitions whose objects nobody asked for go as soon as they are deleted. Their storage is made for the deletion alone; if it answered
// "not yet", the library would miss its second chance and take it after five minutes.
func TestDefinitionsThatNobodyUsed(t *testing.T) {
	s := scriptOn(t, startAPI(t))
	var names []string
	for i := range 30 {
		names = append(names, fmt.Sprintf("cars.transport%d.example.org", i))
		_, err := s.define(strings.ReplaceAll(cars, "transport.", fmt.Sprintf("transport%d.", i)))
		must(t, err)
	}
	for _, name := range names {
		must(t, s.dynamic.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	for _, name := range names {
		err := s.await(func(context.Context) (bool, error) {
			_, err := s.dynamic.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		if err != nil {
			t.Errorf("%s stays: %v", name, err)
		}
	}
}
