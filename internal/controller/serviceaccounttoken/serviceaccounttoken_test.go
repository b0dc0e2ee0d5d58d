package serviceaccounttoken

import (
	"testing"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", New)
}
