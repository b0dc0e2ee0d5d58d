package nodeunschedulable_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeunschedulable"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, nodeunschedulable.Name) }
