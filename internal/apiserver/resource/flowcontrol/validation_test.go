package flowcontrol

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"FlowSchema":                 resourcetest.Of(flowSchema()),
		"PriorityLevelConfiguration": resourcetest.Of(priorityLevel()),
	})
}
