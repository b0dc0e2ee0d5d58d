package statefulset_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/garbagecollector"
	"github.com/bayplan/bayplan/internal/controller/statefulset"
)

// The garbage collector runs along: it deletes the claims that a retention policy gives up.
func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", statefulset.New, garbagecollector.New)
}
