package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/apiserver"
)

// kindCase is what is checked of a kind. A kind that is added to the server is covered by one more value in cases_test.go.
type kindCase struct {
	// resource is "plural.version.group", as kubectl takes it; short are the short names, "category/..." a category.
	resource, short string
	// subs are the sub-resources, in order.
	subs string
	// object is the least that can be created, without apiVersion, kind and name.
	object string
	// want are fields of what is stored, as JSON: the defaults.
	want string
	// status is a status that can be written, for kinds that have one.
	status string
	// columns are those of `kubectl get`; wide ones have a star. Row is the row of the object without its age, where given.
	columns, row string
	// name, where the kind does not take every name.
	name string
	// generation: the kind counts its generations.
	generation bool
}

func (c *kindCase) objectName() string {
	if c.name != "" {
		return c.name
	}
	return "a"
}

func TestKinds(t *testing.T) {
	// Nothing takes the finalizer away that protects claims and volumes: the controller for it does not run here.
	a := startAPI(t, func(c *apiserver.Config) { c.Admission.Disable = []string{"StorageObjectInUseProtection"} })
	_, lists, err := a.client.Discovery().ServerGroupsAndResources()
	must(t, err)
	found := discovered(lists)
	for i := range kindCases {
		c := &kindCases[i]
		delete(found.unseen, c.resource)
		t.Run(c.resource, func(t *testing.T) {
			d, ok := found.all[c.resource]
			if !ok {
				t.Fatalf("discovery does not list it")
			}
			k := &kindTest{t: t, api: a, kindCase: c, found: d, gvr: d.gvr}
			k.resourceInterface()
			k.checkDiscovery()
			k.checkCreate()
			k.checkStatus()
			k.checkApply()
			k.checkTable()
			k.checkDelete()
		})
	}
	for resource := range found.unseen {
		if !slices.Contains(testedElsewhere, resource) {
			t.Errorf("%s is served, and no case covers it", resource)
		}
	}
}

type discovery struct {
	all    map[string]*discoveredResource
	unseen map[string]bool
}

type discoveredResource struct {
	metav1.APIResource
	gvr  schema.GroupVersionResource
	subs []string
}

func discovered(lists []*metav1.APIResourceList) discovery {
	d := discovery{all: map[string]*discoveredResource{}, unseen: map[string]bool{}}
	key := func(gv schema.GroupVersion, name string) string {
		return strings.TrimSuffix(name+"."+gv.Version+"."+gv.Group, ".")
	}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				d.all[key(gv, r.Name)] = &discoveredResource{APIResource: r, gvr: gv.WithResource(r.Name)}
				d.unseen[key(gv, r.Name)] = true
			}
		}
	}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if name, sub, ok := strings.Cut(r.Name, "/"); ok {
				parent := d.all[key(gv, name)]
				parent.subs = append(parent.subs, sub)
			}
		}
	}
	return d
}

// kindTest runs the checks of one kind.
type kindTest struct {
	t *testing.T
	*kindCase
	api    *api
	found  *discoveredResource
	gvr    schema.GroupVersionResource
	client dynamic.ResourceInterface
}

func (k *kindTest) resourceInterface() {
	k.client = k.api.dynamic.Resource(k.gvr)
	if k.found.Namespaced {
		k.client = k.api.dynamic.Resource(k.gvr).Namespace("default")
	}
}

func (k *kindTest) ctx() context.Context { return k.t.Context() }

func (k *kindTest) checkDiscovery() {
	names := slices.Clone(k.found.ShortNames)
	for _, category := range k.found.Categories {
		names = append(names, "category/"+category)
	}
	if got := strings.Join(names, " "); got != k.short {
		k.t.Errorf("short names and categories: got %q, want %q", got, k.short)
	}
	subs := slices.Sorted(slices.Values(k.found.subs))
	if got := strings.Join(subs, " "); got != k.subs {
		k.t.Errorf("sub-resources: got %q, want %q", got, k.subs)
	}
	if k.found.SingularName == "" {
		k.t.Error("no singular name")
	}
}

// manifest is the least object with apiVersion, kind and name.
func (k *kindTest) manifest() *unstructured.Unstructured {
	content := map[string]any{}
	must(k.t, yaml.Unmarshal([]byte(k.object), &content))
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(k.gvr.GroupVersion().WithKind(k.found.Kind))
	u.SetName(k.objectName())
	return u
}

func (k *kindTest) checkCreate() {
	obj, err := k.client.Create(k.ctx(), k.manifest(), metav1.CreateOptions{FieldManager: "creator"})
	if err != nil {
		k.t.Fatalf("create: %v", err)
	}
	want := map[string]any{}
	must(k.t, json.Unmarshal([]byte(orEmpty(k.want)), &want))
	compare(k.t, "", obj.Object, want)
	if (obj.GetGeneration() != 0) != k.generation {
		k.t.Errorf("generation is %d", obj.GetGeneration())
	}
	if len(obj.GetManagedFields()) == 0 {
		k.t.Error("no managedFields")
	}
	_, err = k.client.Create(k.ctx(), k.manifest(), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		k.t.Errorf("creating it twice: %v", err)
	}
}

func orEmpty(text string) string {
	if text == "" {
		return "{}"
	}
	return text
}

// compare wants every field of want in got.
func compare(t *testing.T, path string, got, want any) {
	t.Helper()
	w, ok := want.(map[string]any)
	g, also := got.(map[string]any)
	if ok && also {
		for key, value := range w {
			compare(t, path+"."+key, g[key], value)
		}
		return
	}
	if a, b := asJSON(t, got), asJSON(t, want); a != b {
		t.Errorf("%s: got %s, want %s", path, a, b)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	must(t, err)
	return string(data)
}

// checkStatus writes a status through the resource, which must not take it, and through the sub-resource, which must take nothing else.
func (k *kindTest) checkStatus() {
	if !slices.Contains(k.found.subs, "status") {
		return
	}
	status := map[string]any{}
	must(k.t, yaml.Unmarshal([]byte(k.status), &status))
	if len(status) == 0 {
		k.t.Fatal("the case has no status")
	}
	before, err := k.client.Get(k.ctx(), k.objectName(), metav1.GetOptions{})
	must(k.t, err)
	patch := asJSON(k.t, map[string]any{"status": status})
	after, err := k.client.Patch(k.ctx(), k.objectName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		k.t.Fatalf("patch: %v", err)
	}
	if !equality.Semantic.DeepEqual(before.Object["status"], after.Object["status"]) {
		k.t.Errorf("a write to the resource changed its status: %v", after.Object["status"])
	}
	patch = asJSON(k.t, map[string]any{"status": status, "metadata": map[string]any{"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}}}})
	after, err = k.client.Patch(k.ctx(), k.objectName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	if err != nil {
		k.t.Fatalf("patch of status: %v", err)
	}
	compare(k.t, ".status", after.Object["status"], any(status))
	if len(after.GetOwnerReferences()) > 0 {
		k.t.Error("a write to status changed metadata")
	}
	if !equality.Semantic.DeepEqual(before.Object["spec"], after.Object["spec"]) || before.GetGeneration() != after.GetGeneration() {
		k.t.Error("a write to status changed the specification")
	}
}

// checkApply applies the same twice: the second time nothing changes.
func (k *kindTest) checkApply() {
	first, err := k.client.Apply(k.ctx(), k.objectName(), k.manifest(), metav1.ApplyOptions{FieldManager: "applier", Force: true})
	if err != nil {
		k.t.Fatalf("apply: %v", err)
	}
	second, err := k.client.Apply(k.ctx(), k.objectName(), k.manifest(), metav1.ApplyOptions{FieldManager: "applier"})
	if err != nil {
		k.t.Fatalf("second apply: %v", err)
	}
	if first.GetResourceVersion() != second.GetResourceVersion() {
		k.t.Errorf("the second apply of the same changed the object:\n%s\n%s", asJSON(k.t, first.Object), asJSON(k.t, second.Object))
	}
	var managers []string
	for _, entry := range second.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	if !slices.Contains(managers, "applier") {
		k.t.Errorf("managers: %v", managers)
	}
}

func (k *kindTest) checkTable() {
	table := k.table(k.objectName())
	var names []string
	for _, column := range table.ColumnDefinitions {
		name := column.Name
		if column.Priority > 0 {
			name += "*"
		}
		names = append(names, name)
	}
	if got := strings.Join(names, ", "); got != k.columns {
		k.t.Errorf("columns: got %q, want %q", got, k.columns)
	}
	if len(table.Rows) != 1 || len(table.Rows[0].Cells) != len(table.ColumnDefinitions) {
		k.t.Fatalf("rows: %v", table.Rows)
	}
	var cells []string
	for i, cell := range table.Rows[0].Cells {
		if n := table.ColumnDefinitions[i].Name; n != "Age" && n != "Created At" && n != "Duration" {
			cells = append(cells, fmt.Sprint(cell))
		}
	}
	if got := strings.Join(cells, " | "); k.row != "" && got != k.row {
		k.t.Errorf("row: got %q, want %q", got, k.row)
	}
}

func (k *kindTest) table(name string) *metav1.Table {
	config := rest.CopyConfig(k.api.config)
	gv := k.gvr.GroupVersion()
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &gv, "/apis", scheme.Codecs.WithoutConversion()
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(config)
	must(k.t, err)
	table := &metav1.Table{}
	data, err := client.Get().NamespaceIfScoped("default", k.found.Namespaced).Resource(k.gvr.Resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(k.ctx()).Raw()
	must(k.t, err)
	must(k.t, json.Unmarshal(data, table))
	return table
}

func (k *kindTest) checkDelete() {
	list, err := k.client.List(k.ctx(), metav1.ListOptions{FieldSelector: "metadata.name=" + k.objectName()})
	if err != nil || len(list.Items) != 1 {
		k.t.Fatalf("list by name: %d objects, %v", len(list.Items), err)
	}
	background := metav1.DeletePropagationBackground
	if err := k.client.Delete(k.ctx(), k.objectName(), metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}); err != nil {
		k.t.Fatalf("delete: %v", err)
	}
	if k.gvr.Resource == "namespaces" {
		// A namespace waits for the controller that empties it.
		return
	}
	if _, err = k.client.Get(k.ctx(), k.objectName(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		k.t.Errorf("after deletion: %v", err)
	}
}
