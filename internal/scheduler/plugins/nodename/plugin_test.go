package nodename_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodename"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, nodename.Name) }
