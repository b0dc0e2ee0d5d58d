// Package all puts the controllers together. It is the only package that knows all of them.
package all

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/cronjob"
	"github.com/bayplan/bayplan/internal/controller/daemonset"
	"github.com/bayplan/bayplan/internal/controller/deployment"
	"github.com/bayplan/bayplan/internal/controller/disruption"
	"github.com/bayplan/bayplan/internal/controller/endpoint"
	"github.com/bayplan/bayplan/internal/controller/endpointslice"
	"github.com/bayplan/bayplan/internal/controller/garbagecollector"
	"github.com/bayplan/bayplan/internal/controller/job"
	"github.com/bayplan/bayplan/internal/controller/namespace"
	"github.com/bayplan/bayplan/internal/controller/nodelifecycle"
	"github.com/bayplan/bayplan/internal/controller/podgc"
	"github.com/bayplan/bayplan/internal/controller/replicaset"
	"github.com/bayplan/bayplan/internal/controller/replicationcontroller"
	"github.com/bayplan/bayplan/internal/controller/resourcequota"
	"github.com/bayplan/bayplan/internal/controller/rootca"
	"github.com/bayplan/bayplan/internal/controller/serviceaccount"
	"github.com/bayplan/bayplan/internal/controller/statefulset"
	"github.com/bayplan/bayplan/internal/controller/tainteviction"
	"github.com/bayplan/bayplan/internal/controller/ttlafterfinished"
)

// Constructor makes one controller.
type Constructor func(ctx context.Context, deps controller.Deps) (controller.Controller, error)

// Table names the constructor of each controller, in the order in which they start.
func Table() []Entry {
	return []Entry{
		{serviceaccount.Name, serviceaccount.New},
		{rootca.Name, rootca.New},
		{replicaset.Name, replicaset.New},
		{replicationcontroller.Name, replicationcontroller.New},
		{deployment.Name, deployment.New},
		{garbagecollector.Name, garbagecollector.New},
		{daemonset.Name, daemonset.New},
		{statefulset.Name, statefulset.New},
		{cronjob.Name, cronjob.New},
		{disruption.Name, disruption.New},
		{endpoint.Name, endpoint.New},
		{endpointslice.Name, endpointslice.New},
		{job.Name, job.New},
		{ttlafterfinished.Name, ttlafterfinished.New},
		{namespace.Name, namespace.New},
		{nodelifecycle.Name, nodelifecycle.New},
		{tainteviction.Name, tainteviction.New},
		{resourcequota.Name, resourcequota.New},
		{podgc.Name, podgc.New},
	}
}

// Entry is a line of the table.
type Entry struct {
	Name string
	New  Constructor
}

// Group is a set of controllers that run together.
type Group struct {
	deps        controller.Deps
	controllers []controller.Controller
}

// New makes the controllers of the given names, or all when none is given.
func New(ctx context.Context, deps controller.Deps, names ...string) (*Group, error) {
	deps = deps.WithDefaults()
	g := &Group{deps: deps}
	for _, entry := range Table() {
		if len(names) > 0 && !slices.Contains(names, entry.Name) {
			continue
		}
		c, err := entry.New(ctx, deps)
		if err != nil {
			return nil, fmt.Errorf("make controller %s: %w", entry.Name, err)
		}
		g.controllers = append(g.controllers, c)
	}
	if len(names) > len(g.controllers) {
		return nil, fmt.Errorf("no such controller among %v: known are %v", names, Names())
	}
	return g, nil
}

// Names lists the names of all controllers.
func Names() []string {
	var names []string
	for _, entry := range Table() {
		names = append(names, entry.Name)
	}
	return names
}

// Run starts the shared informers and runs the controllers until ctx is done. It returns when all of their goroutines have ended; the informers,
// which others may share, are left to their owner.
func (g *Group) Run(ctx context.Context) {
	g.deps.Informers.StartWithContext(ctx)
	var running sync.WaitGroup
	for _, c := range g.controllers {
		running.Go(func() { c.Run(ctx) })
	}
	running.Wait()
}
