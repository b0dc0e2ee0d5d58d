package volumerestrictions_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/plugins/volumerestrictions"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
)

func TestREADME(t *testing.T) { transcript.README(t, volumerestrictions.Name) }
