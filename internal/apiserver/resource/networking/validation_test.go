package networking

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"Ingress":       resourcetest.Of(ingress()),
		"IngressClass":  resourcetest.Of(ingressClass()),
		"IPAddress":     resourcetest.Of(IPAddress()),
		"NetworkPolicy": resourcetest.Of(networkPolicy()),
		"ServiceCIDR":   resourcetest.Of(ServiceCIDR()),
	})
}
