package volumezone_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumezone"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, volumezone.Name) }
