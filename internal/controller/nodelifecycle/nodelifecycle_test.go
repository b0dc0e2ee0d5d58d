package nodelifecycle_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/nodelifecycle"
	"github.com/bayplan/bayplan/internal/controller/tainteviction"
)

// Taint eviction runs along: what a taint does to pods is the point of it.
func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", nodelifecycle.New, tainteviction.New)
}
