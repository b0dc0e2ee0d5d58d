// Package garbagecollector deletes objects whose owners are gone, and carries out foreground and orphaning deletion.
//
// It watches the metadata of every resource that discovery names and that can be listed, watched and deleted, custom ones included:
//
//	discovery ──► resources ──► monitors (one metadata informer each) ──► graph (who is owned by whom) ──UID──► queue ──► sync
//
// The graph knows each object by UID with its owner references. A change that could matter puts the UIDs concerned into the queue. A sync
// looks at one object: if it is being deleted in the foreground, its dependents go first; if it is being deleted as orphaning, they lose
// their reference; otherwise it is deleted when none of its owners lives. That an owner is gone is never concluded from the graph, only
// from the API server's answer, and the delete names the resource version at which the references were read.
//
// A new custom resource or API service brings a new look at discovery.
package garbagecollector

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "garbage-collector-controller"

const (
	// workers is how many objects are looked at at the same time.
	workers = 20
	// absentOwners is how many UIDs of owners that are known to be gone are remembered.
	absentOwners = 4096
)

// Controller is the garbage collector.
type Controller struct {
	*controller.Loop
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	clock     clock.WithTicker
	graph     *graph
	monitors  *monitors
	refresh   *controller.Loop
	absent    *lru.Cache

	mu     sync.Mutex
	paused sets.Set[string] // keys that wait until the graph is complete
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	deps.Workers = workers
	c := &Controller{metadata: deps.Metadata, discovery: deps.Discovery, clock: deps.Clock, absent: lru.New(absentOwners), paused: sets.New[string]()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	c.graph = newGraph(func(uid types.UID) { c.Add(string(uid)) })
	deps.Workers = 1
	c.refresh = controller.NewLoop("garbage_collector_discovery", deps, func(ctx context.Context, _ string) error { return c.discover(ctx) })
	c.monitors = newMonitors(deps.Metadata, deps.Clock, c.graph, c.askDiscovery, c.resume)
	return c, nil
}

// settling is how long after a new definition discovery is read again: the API server needs a moment to serve it.
const settling = 2 * time.Second

// askDiscovery has discovery read again, soon and once more when the change has surely arrived.
func (c *Controller) askDiscovery() {
	c.refresh.Add("now")
	c.refresh.AddAfter("settled", settling)
}

// pause puts a key aside until another resource has been read, or until it is no use to wait any longer.
func (c *Controller) pause(key string, atMost time.Duration) {
	c.mu.Lock()
	c.paused.Insert(key)
	c.mu.Unlock()
	c.AddAfter(key, atMost)
}

// resume brings back the keys that were put aside.
func (c *Controller) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.paused {
		c.Add(key)
	}
	clear(c.paused)
}

// Run works until ctx is done.
func (c *Controller) Run(ctx context.Context) {
	c.refresh.Add("start")
	refreshed := make(chan struct{})
	go func() {
		defer close(refreshed)
		c.refresh.Run(ctx)
	}()
	c.Loop.Run(ctx)
	<-refreshed
	c.monitors.stopAll()
}

// discover brings the monitors up to date with what the API server serves.
func (c *Controller) discover(ctx context.Context) error {
	table, err := readResources(c.discovery)
	if table != nil {
		c.monitors.update(ctx, table, err != nil)
	}
	return err
}
