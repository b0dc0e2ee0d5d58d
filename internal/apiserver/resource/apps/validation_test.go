package apps

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"ControllerRevision": resourcetest.Of(controllerRevision()),
		"DaemonSet":          resourcetest.Of(daemonSet()),
		"Deployment":         resourcetest.Of(deployment()),
		"ReplicaSet":         resourcetest.Of(replicaSet()),
		"StatefulSet":        resourcetest.Of(statefulSet()),
	})
}
