package core

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"ConfigMap":             resourcetest.Of(configMap()),
		"Endpoints":             resourcetest.Of(endpoints()),
		"LimitRange":            resourcetest.Of(limitRange()),
		"PersistentVolume":      resourcetest.Of(persistentVolume()),
		"PersistentVolumeClaim": resourcetest.Of(persistentVolumeClaim()),
		"Pod":                   resourcetest.Of(pod(Options{})),
		"ReplicationController": resourcetest.Of(replicationController()),
		"ResourceQuota":         resourcetest.Of(resourceQuota()),
		"Secret":                resourcetest.Of(secret()),
		"Service":               resourcetest.Of(service(Options{})),
	})
}
