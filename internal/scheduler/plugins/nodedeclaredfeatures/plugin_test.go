package nodedeclaredfeatures_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodedeclaredfeatures"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, nodedeclaredfeatures.Name) }
