package nodevolumelimits_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodevolumelimits"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, nodevolumelimits.Name) }
