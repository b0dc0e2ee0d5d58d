// Package admissiontest runs transcripts of admission plugins:
//
//	have
//	{kind: LimitRange, ...}
//	----
//
//	create
//	{kind: Pod, ...}
//	----
//	= spec.containers[0].resources.requests.cpu: 100m
//
// "have" puts objects into the cluster, "late" into the API but not into the plugin's caches, which are behind. "create", "update" (the old object, then the new one)
// and "update SUBRESOURCE" ask the plugin; what it answers is its error, what it changed ("=" a value, "-" what is gone), or "admitted". Documents of YAML are
// separated by "---". The flag -update rewrites what follows "----".
package admissiontest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "rewrite testdata")

// Constructor makes a plugin of what it finds objects by: the API, and caches that are filled before it is asked.
type Constructor func(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface

// Run runs each transcript of testdata with a new plugin.
func Run(t *testing.T, plugin Constructor) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			must(t, err)
			got := (&script{plugin: plugin}).run(t, string(want))
			if *update {
				must(t, os.WriteFile(file, []byte(got), 0o644)) //nolint:gosec // a file of the source
			} else if got != string(want) {
				t.Errorf("%s is not what the plugin answers; run with -update and look at the difference. Got:\n%s", file, got)
			}
		})
	}
}

// script is the state of a transcript that runs.
type script struct {
	plugin     Constructor
	have, late []runtime.Object
}

func (s *script) run(t *testing.T, text string) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		said, _, _ := strings.Cut(block, "\n----")
		out.WriteString(said + "\n")
		if strings.HasPrefix(said, "#") && !strings.Contains(said, "\n") {
			continue
		}
		out.WriteString("----\n" + s.command(t, said))
	}
	return out.String()
}

// command carries out one block, of which leading comments were not removed yet.
func (s *script) command(t *testing.T, said string) string {
	for strings.HasPrefix(said, "#") {
		_, said, _ = strings.Cut(said, "\n")
	}
	verb, input, _ := strings.Cut(said, "\n")
	verb, sub, _ := strings.Cut(verb, " ")
	objects := parse(t, input)
	switch {
	case verb == "have":
		s.have = append(s.have, objects...)
		return ""
	case verb == "late":
		s.late = append(s.late, objects...)
		return ""
	case verb == "create" && len(objects) == 1:
		return s.ask(t, admission.Create, objects[0], nil, sub)
	case verb == "update" && len(objects) == 2:
		return s.ask(t, admission.Update, objects[1], objects[0], sub)
	}
	t.Fatalf("not a command, or not its number of objects: %q", said)
	return ""
}

// ask has the plugin admit a request, first to change it and then to check it.
func (s *script) ask(t *testing.T, operation admission.Operation, obj, old runtime.Object, sub string) string {
	plugin := Start(t, s.plugin, s.have, s.late)
	if !plugin.Handles(operation) {
		return "not asked\n"
	}
	before := flatten(t, obj)
	a := Attributes(t, operation, obj, old, sub)
	if m, ok := plugin.(admission.MutationInterface); ok {
		if err := m.Admit(t.Context(), a, nil); err != nil {
			return err.Error() + "\n"
		}
	}
	if v, ok := plugin.(admission.ValidationInterface); ok {
		if err := v.Validate(t.Context(), a, nil); err != nil {
			return err.Error() + "\n"
		}
	}
	return difference(before, flatten(t, obj))
}

// Start makes a plugin with filled caches: of objects in have the caches know, of those in late only the API does.
func Start(t testing.TB, constructor Constructor, have, late []runtime.Object) admission.Interface {
	t.Helper()
	cached, live := fake.NewClientset(copies(have)...), fake.NewClientset(append(copies(have), copies(late)...)...)
	factory := informers.NewSharedInformerFactory(cached, 0)
	plugin := constructor(live, factory)
	factory.StartWithContext(t.Context())
	t.Cleanup(factory.Shutdown)
	factory.WaitForCacheSync(t.Context().Done())
	return plugin
}

// Attributes are those of a request that writes obj.
func Attributes(t testing.TB, operation admission.Operation, obj, old runtime.Object, sub string) admission.Attributes {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	must(t, err)
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	accessor, err := meta.Accessor(obj)
	must(t, err)
	var options runtime.Object = &metav1.CreateOptions{}
	if operation == admission.Update {
		options = &metav1.UpdateOptions{}
	}
	return admission.NewAttributesRecord(obj, old, kinds[0], accessor.GetNamespace(), accessor.GetName(), resource, sub, operation, options, false, &user.DefaultInfo{Name: "tester"})
}

func copies(objects []runtime.Object) []runtime.Object {
	out := make([]runtime.Object, len(objects))
	for i, o := range objects {
		out[i] = o.DeepCopyObject()
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
