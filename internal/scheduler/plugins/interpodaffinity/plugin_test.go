package interpodaffinity_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/interpodaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, interpodaffinity.Name) }
