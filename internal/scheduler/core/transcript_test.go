package core_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestTranscripts(t *testing.T) { transcript.Files(t, "testdata/*.txt") }
