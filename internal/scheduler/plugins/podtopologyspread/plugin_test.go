package podtopologyspread_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/podtopologyspread"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, podtopologyspread.Name) }
