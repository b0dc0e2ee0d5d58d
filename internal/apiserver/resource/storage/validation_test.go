package storage

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"CSIDriver":             resourcetest.Of(csiDriver()),
		"CSINode":               resourcetest.Of(csiNode()),
		"CSIStorageCapacity":    resourcetest.Of(csiStorageCapacity()),
		"StorageClass":          resourcetest.Of(storageClass()),
		"VolumeAttachment":      resourcetest.Of(volumeAttachment()),
		"VolumeAttributesClass": resourcetest.Of(volumeAttributesClass()),
	})
}
