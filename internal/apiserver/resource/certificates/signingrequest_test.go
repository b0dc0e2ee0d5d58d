package certificates

import (
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// conditionsOf makes conditions of words "Type=Reason".
func conditionsOf(words string) []certificatesv1.CertificateSigningRequestCondition {
	var out []certificatesv1.CertificateSigningRequestCondition
	for _, word := range strings.Fields(words) {
		kind, reason, _ := strings.Cut(word, "=")
		out = append(out, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.RequestConditionType(kind), Reason: reason})
	}
	return out
}

func TestSignersDoNotDecide(t *testing.T) {
	for _, test := range []struct{ what, old, written, want string }{
		{"a report after the decision", "Approved=a", "Approved=a Failed=f", "Approved=a Failed=f"},
		{"a report before the decision", "Approved=a", "Failed=f Approved=a", "Failed=f Approved=a"},
		{"another reason", "Approved=a", "Approved=b", "Approved=a"},
		{"a decision that is left out", "Seen=s Approved=a", "Seen=s", "Seen=s Approved=a"},
		{"a decision that is added", "", "Denied=d Failed=f", "Failed=f"},
		{"another decision", "Approved=a", "Denied=d", "Approved=a"},
		{"a second decision", "Approved=a", "Approved=a Denied=d", "Approved=a"},
	} {
		old, written := &csr{}, &csr{}
		old.Status.Conditions, written.Status.Conditions = conditionsOf(test.old), conditionsOf(test.written)
		keepDecision(written, old)
		if !slices.Equal(written.Status.Conditions, conditionsOf(test.want)) {
			t.Errorf("%s: %v, want %s", test.what, written.Status.Conditions, test.want)
		}
	}
}
