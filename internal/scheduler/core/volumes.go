package core

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/queue"
	"k8s.io/apimachinery/pkg/types"
)

// volumeWait is a pod that has a node and waits for its volumes.
type volumeWait struct {
	attempt  *Attempt
	deadline time.Time
	// written tells that the plan is with the API server.
	written bool
}

// Settled is a pod whose wait for its volumes is over.
type Settled struct {
	Attempt *Attempt
	// Err tells that the volumes cannot be bound, so that the pod cannot either.
	Err error
}

// errTimeout is why a pod is tried again whose volumes were not bound in time.
var errTimeout = errors.New("binding volumes: not bound in time")

// planVolumes lets what a pod needs of volumes on its node count, and remembers that it has to wait for it.
func (c *Core) planVolumes(attempt *Attempt, engine *cycle.Engine, pod *cycle.Pod, slot int32, now time.Time) {
	plan := engine.PlanVolumes(pod, slot)
	if plan == nil || plan.Empty() {
		return
	}
	c.Ledger.Storage.Assume(plan)
	attempt.Volumes = plan
	c.volumes[attempt.Pod.UID] = &volumeWait{attempt: attempt, deadline: now.Add(engine.VolumeTimeout())}
}

// VolumesWritten is called when the plan of an attempt has been written; its objects are now those that the API server
// returned. Settled tells when they are bound.
func (c *Core) VolumesWritten(uid types.UID, now time.Time) {
	if wait := c.volumes[uid]; wait != nil {
		wait.written = true
		c.settle(uid, wait, now)
	}
}

// forgetVolumes ends a wait. What was assumed and has not been written meanwhile no longer counts.
func (c *Core) forgetVolumes(uid types.UID) {
	if wait := c.volumes[uid]; wait != nil {
		c.Ledger.Storage.Forget(wait.attempt.Volumes)
		delete(c.volumes, uid)
	}
}

// settle ends the wait of a pod whose volumes are bound or cannot be bound any more.
func (c *Core) settle(uid types.UID, wait *volumeWait, now time.Time) {
	slot, known := c.Ledger.Slot(wait.attempt.Node)
	if !known {
		return
	}
	done, err := c.Ledger.Storage.Settled(wait.attempt.Volumes, c.Ledger.Labels(slot))
	if err == nil && !done && !now.Before(wait.deadline) {
		err = errTimeout
	}
	if done || err != nil {
		delete(c.volumes, uid)
		c.settled = append(c.settled, Settled{wait.attempt, err})
	}
}

// Settled returns the pods whose wait has ended since it was last called. Each is then to be bound, or BindFailed.
func (c *Core) Settled(now time.Time) []Settled {
	for _, uid := range slices.Sorted(maps.Keys(c.volumes)) {
		if wait := c.volumes[uid]; wait.written && !now.Before(wait.deadline) {
			c.settle(uid, wait, now)
		}
	}
	out := c.settled
	c.settled = nil
	return out
}

// NextWake returns when there will be something to do even if nothing happens.
func (c *Core) NextWake() (at time.Time, ok bool) {
	at, ok = c.Queue.NextWake()
	for _, wait := range c.volumes {
		if wait.written && (!ok || wait.deadline.Before(at)) {
			at, ok = wait.deadline, true
		}
	}
	return at, ok
}

// StorageChanged is called after a change of the ledger's storage that may let pods be placed: those that use the claim, or,
// if none is named, all that plugins for volumes have rejected.
func (c *Core) StorageChanged(namespace, claim string, now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(c.volumes)) {
		if wait := c.volumes[uid]; wait.written {
			c.settle(uid, wait, now)
		}
	}
	c.Queue.Move(func(g *queue.Group) bool {
		if len(g.Shape.Claims) == 0 || !c.engines[g.Profile].RejectedForVolumes(g.Rejectors) {
			return false
		}
		if claim == "" {
			return true
		}
		return g.Shape.Class.Namespace == namespace && usesClaim(g, claim)
	}, now)
	c.happened(ledger.None, now)
}

func usesClaim(g *queue.Group, name string) bool {
	for i := range g.Shape.Claims {
		if g.Shape.Claims[i].Name == name {
			return true
		}
	}
	return false
}
