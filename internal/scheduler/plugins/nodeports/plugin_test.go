package nodeports_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeports"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, nodeports.Name) }
