package tainttoleration_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/tainttoleration"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, tainttoleration.Name) }
