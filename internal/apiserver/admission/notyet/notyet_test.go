package notyet

import (
	"context"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
)

// recorded keeps warnings.
type recorded struct{ texts []string }

// AddWarning implements warning.Recorder.
func (r *recorded) AddWarning(_, text string) { r.texts = append(r.texts, text) }

func TestWarnings(t *testing.T) {
	const want = `NetworkPolicy "x" is stored, but nothing acts on it yet: no network policy is enforced: pods reach each other as if there were none`
	policy := schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	for _, test := range []struct {
		what, user string
		resource   schema.GroupVersionResource
		sub        string
		want       []string
	}{
		{"a user", "jane", policy, "", []string{want}},
		{"a program in a pod", "system:serviceaccount:default:robot", policy, "", []string{want}},
		{"a component", "system:kube-controller-manager", policy, "", nil},
		{"a sub-resource", "jane", policy, "status", nil},
		{"a kind that is acted on", "jane", schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "", nil},
		{"a namesake in another group", "jane", schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "networkpolicies"}, "", nil},
	} {
		r := &recorded{}
		a := admission.NewAttributesRecord(nil, nil, test.resource.GroupVersion().WithKind("NetworkPolicy"), "default", "x", test.resource, test.sub,
			admission.Create, nil, false, &user.DefaultInfo{Name: test.user})
		if err := New().Validate(warning.WithWarningRecorder(context.Background(), r), a, nil); err != nil || !slices.Equal(r.texts, test.want) {
			t.Errorf("%s: %q, %v; want %q", test.what, r.texts, err, test.want)
		}
	}
}

// TestTable keeps the lines fit for a header: one line each, without a full stop, as all warnings are.
func TestTable(t *testing.T) {
	for resource, text := range table {
		if text == "" || text[len(text)-1] == '.' || slices.Contains([]byte(text), '\n') {
			t.Errorf("%s: %q is not a line without a full stop", resource, text)
		}
	}
}
