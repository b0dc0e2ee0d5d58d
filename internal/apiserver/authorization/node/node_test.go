package node

import (
	"flag"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/bayplan/bayplan/internal/apiserver/authorization/policy"
)

var update = flag.Bool("update", false, "rewrite testdata")

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world reads the objects of testdata/world.yaml.
func world(t testing.TB) []runtime.Object {
	text, err := os.ReadFile("testdata/world.yaml")
	must(t, err)
	var out []runtime.Object
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		data, err := yaml.ToJSON([]byte(document))
		must(t, err)
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		must(t, err)
		out = append(out, obj)
	}
	return out
}

func rules(t testing.TB) []rbacv1.PolicyRule {
	p, err := policy.Default()
	must(t, err)
	return p.ClusterRole(policy.NodeRole).Rules
}

// newAuthorizer has heard of the pods by its informer, or not.
func newAuthorizer(t testing.TB, objects []runtime.Object, cached bool) *Authorizer {
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	a, err := New(client, factory, rules(t))
	must(t, err)
	for _, obj := range objects {
		if pod, ok := obj.(*corev1.Pod); ok && cached {
			must(t, a.pods.GetIndexer().Add(pod))
		}
	}
	return a
}

// readRequest reads "VERB RESOURCE[.GROUP][/SUB] [NAMESPACE]/[NAME] [FIELD SELECTOR]", or "VERB /PATH".
func readRequest(t testing.TB, u user.Info, text string) authorizer.AttributesRecord {
	words := append(strings.Fields(text), "", "", "")
	a := authorizer.AttributesRecord{User: u, Verb: words[0]}
	if strings.HasPrefix(words[1], "/") {
		a.Path = words[1]
		return a
	}
	a.ResourceRequest = true
	resource, sub, _ := strings.Cut(words[1], "/")
	a.Resource, a.APIGroup, _ = strings.Cut(resource, ".")
	a.Subresource = sub
	a.Namespace, a.Name, _ = strings.Cut(words[2], "/")
	if words[3] != "" {
		selector, err := fields.ParseSelector(words[3])
		must(t, err)
		a.FieldSelectorRequirements = selector.Requirements()
	}
	return a
}

// TestTranscript asks for node n1 what testdata/requests.txt asks. Whether the informer has heard of the pods must make no difference.
func TestTranscript(t *testing.T) {
	const file = "testdata/requests.txt"
	text, err := os.ReadFile(file)
	must(t, err)
	node := &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup, user.AllAuthenticated}}
	objects := world(t)
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		request, _, ok := strings.Cut(line, " => ")
		if !ok {
			out.WriteString(line)
			continue
		}
		answers := map[string]bool{}
		for _, cached := range []bool{true, false} {
			decision, reason, err := newAuthorizer(t, objects, cached).Authorize(t.Context(), readRequest(t, node, request))
			must(t, err)
			answer := "refused: " + reason
			if decision == authorizer.DecisionAllow {
				answer = "allowed"
			}
			answers[strings.TrimSuffix(answer, ": ")] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s: with and without the cache: %v", request, answers)
		}
		for answer := range answers {
			out.WriteString(request + " => " + answer + "\n")
		}
	}
	if *update {
		must(t, os.WriteFile(file, []byte(out.String()), 0o644))
	}
	if out.String() != string(text) && !*update {
		t.Errorf("%s differs (run with -update to rewrite):\n%s", file, out.String())
	}
}

// TestWho: name and group make a node.
func TestWho(t *testing.T) {
	a := newAuthorizer(t, world(t), true)
	for name, c := range map[string]struct {
		user *user.DefaultInfo
		want authorizer.Decision
	}{
		"node":          {&user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup}}, authorizer.DecisionAllow},
		"another node":  {&user.DefaultInfo{Name: "system:node:n2", Groups: []string{user.NodesGroup}}, authorizer.DecisionNoOpinion},
		"without group": {&user.DefaultInfo{Name: "system:node:n1"}, authorizer.DecisionNoOpinion},
		"without name":  {&user.DefaultInfo{Name: "n1", Groups: []string{user.NodesGroup}}, authorizer.DecisionNoOpinion},
		"nobody":        {&user.DefaultInfo{Name: "system:node:", Groups: []string{user.NodesGroup}}, authorizer.DecisionNoOpinion},
	} {
		got, _, err := a.Authorize(t.Context(), readRequest(t, c.user, "get secrets ns/pull"))
		must(t, err)
		if got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		_, _, incomplete, err := a.RulesFor(t.Context(), c.user, "ns")
		if node := Name(c.user) != ""; incomplete != node || (err != nil) != node {
			t.Errorf("%s: rules incomplete %v, %v", name, incomplete, err)
		}
	}
	if got, _, _ := a.Authorize(t.Context(), authorizer.AttributesRecord{}); got != authorizer.DecisionNoOpinion {
		t.Error("without a user something is allowed")
	}
}
