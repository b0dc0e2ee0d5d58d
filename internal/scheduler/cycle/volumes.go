package cycle

import (
	"slices"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
)

// defaultVolumeTimeout is how long volumes have if no plugin says otherwise.
const defaultVolumeTimeout = 10 * time.Minute

// VolumePlugin is a filter plugin that rejects pods for the sake of their volumes: what changes there may help them.
type VolumePlugin interface {
	plugin.FilterPlugin
	ForVolumes()
}

// PlanVolumes tells what has to be done about a pod's volumes on a node that takes it; nil if there is no plugin that
// would know.
func (e *Engine) PlanVolumes(pod *Pod, slot int32) *storage.Plan {
	if len(pod.Shape.Claims) == 0 {
		return nil
	}
	v := e.view(pod.Shape)
	for i := range v.filters {
		if planner, ok := v.filters[i].Filter.(plugin.Planner); ok {
			return planner.Plan(slot)
		}
	}
	return nil
}

// VolumeTimeout is how long to wait for volumes to be bound.
func (e *Engine) VolumeTimeout() time.Duration {
	for _, p := range e.profile.Filters {
		if timed, ok := p.(interface{ BindTimeout() time.Duration }); ok {
			return timed.BindTimeout()
		}
	}
	return defaultVolumeTimeout
}

// RejectedForVolumes reports whether one of the plugins named looks at volumes.
func (e *Engine) RejectedForVolumes(rejectors []string) bool {
	return slices.ContainsFunc(e.profile.Filters, func(p plugin.FilterPlugin) bool {
		_, ok := p.(VolumePlugin)
		return ok && slices.Contains(rejectors, p.Name())
	})
}
