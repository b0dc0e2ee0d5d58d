package deployment_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/deployment"
	"github.com/bayplan/bayplan/internal/controller/replicaset"
)

// The ReplicaSet controller runs along: what a Deployment does next depends on what became of its ReplicaSets.
func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", deployment.New, replicaset.New)
}
