package scheduling

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"PriorityClass": resourcetest.Of(priorityClass()),
		"Workload":      resourcetest.Of(workload()),
		"PodGroup":      resourcetest.Of(podGroup()),
	})
}
