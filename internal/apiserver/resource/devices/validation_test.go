package devices

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"DeviceClass":           resourcetest.Of(deviceClass()),
		"DeviceTaintRule":       resourcetest.Of(deviceTaintRule()),
		"ResourceClaim":         resourcetest.Of(resourceClaim()),
		"ResourceClaimTemplate": resourcetest.Of(resourceClaimTemplate()),
		"ResourceSlice":         resourcetest.Of(resourceSlice()),
	})
}
