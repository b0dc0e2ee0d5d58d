package volumebinding_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumebinding"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, volumebinding.Name) }
