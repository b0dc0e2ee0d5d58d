package balancedallocation_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/balancedallocation"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, balancedallocation.Name) }
