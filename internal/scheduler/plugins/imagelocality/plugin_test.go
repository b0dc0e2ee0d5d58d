package imagelocality_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/imagelocality"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, imagelocality.Name) }
