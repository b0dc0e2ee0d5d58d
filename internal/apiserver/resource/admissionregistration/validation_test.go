package admissionregistration

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"MutatingAdmissionPolicy":          resourcetest.Of(mutatingPolicy()),
		"MutatingWebhookConfiguration":     resourcetest.Of(mutatingWebhooks()),
		"ValidatingAdmissionPolicy":        resourcetest.Of(validatingPolicy()),
		"ValidatingAdmissionPolicyBinding": resourcetest.Of(validatingPolicyBinding()),
		"ValidatingWebhookConfiguration":   resourcetest.Of(validatingWebhooks()),
	})
}
