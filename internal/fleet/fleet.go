// Package fleet runs simulated nodes: Nodes in the API behind which no machine stands, but which behave as if one did. Every Node with the label
// bayplan.dev/simulated=true belongs to the fleet, whoever made it; so nodes come and go in a running cluster, and are found again after a restart.
//
//	Nodes, Pods (informers) ─► node, pod ─► step: package life tells what has happened ─► writers ─► status, deletion, leases
//	                               ▲                         │
//	                               └───── timer wheel ◄──────┘ when to look again
//
// All nodes share one goroutine for time, one timer wheel, and a few writers; a node or pod costs memory, and work only when something happens. Heartbeats are spread
// evenly over their period. All state is under one lock, which is never held while the API is asked.
//
// What pods do is told by package behavior. The nodes' API (logs, usage) is answered by package nodeapi without a socket: see Network.
package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/behavior"
	"github.com/bayplan/bayplan/internal/fleet/wheel"
)

// Name is the fleet's name in logs and events.
const Name = "fleet"

// Config is what a fleet is made of.
type Config struct {
	// Client should have no rate limit of its own.
	Client kubernetes.Interface
	// Dynamic, if it is set, leads to NodeGroups and PodBehaviors in the API, which must be defined there.
	Dynamic dynamic.Interface
	// Informers are asked for Nodes and Pods; the caller starts them after New.
	Informers informers.SharedInformerFactory
	// Recorder records events on pods and nodes.
	Recorder record.EventRecorder
	// Clock is optional: the real one otherwise.
	Clock clock.Clock

	// Groups are the nodes that there shall be; others that are there stay.
	Groups []v1alpha1.NodeGroup
	// Rules say what pods do.
	Rules []v1alpha1.PodBehavior
	// Seed decides what is left to chance.
	Seed uint64
	// NodeCIDR and PodCIDR are where the addresses of nodes and pods come from.
	NodeCIDR, PodCIDR netip.Prefix
	// LeasePeriod is the time between two heartbeats of a node. Optional: DefaultLeasePeriod.
	LeasePeriod time.Duration
	// Writers is how many writes about pods are under way at once. Optional: 16.
	Writers int
	// Version is what nodes tell as their kubelet's. Optional: v1.37.2.
	Version string
}

const (
	// DefaultLeasePeriod is the kubelet's.
	DefaultLeasePeriod = 10 * time.Second
	// MaxLeasePeriod leaves two heartbeats in the time after which a node counts as lost.
	MaxLeasePeriod = 20 * time.Second

	defaultWriters = 16
	defaultVersion = "v1.37.2"
)

func (c *Config) complete() error {
	switch {
	case c.LeasePeriod == 0:
		c.LeasePeriod = DefaultLeasePeriod
	case c.LeasePeriod < time.Second || c.LeasePeriod > MaxLeasePeriod:
		return fmt.Errorf("the period of heartbeats is %s and must be from 1s to %s, or nodes would count as lost", c.LeasePeriod, MaxLeasePeriod)
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Writers == 0 {
		c.Writers = defaultWriters
	}
	if c.Version == "" {
		c.Version = defaultVersion
	}
	return nil
}

// Fleet is a set of simulated nodes. Make it with New.
type Fleet struct {
	cfg      Config
	clock    clock.Clock
	rules    *behavior.Rules
	informer struct{ nodes, pods cache.SharedIndexInformer }
	// objects is nil when the fleet's own objects are not read from the API.
	objects *objects
	// writes are keys of what may have to be written: names of nodes, UIDs of pods.
	writes struct {
		leases, nodes workqueue.TypedInterface[string]
		pods          workqueue.TypedInterface[types.UID]
	}
	// woken lets the goroutine of time look at the wheel again; populated is closed when all nodes of the groups are there.
	woken     chan struct{}
	populated chan struct{}

	mu      sync.Mutex
	running bool
	wheel   *wheel.Wheel[func(now time.Time)]
	// asleep is until when the goroutine of time sleeps.
	asleep time.Time
	nodes  map[string]*node
	// byAddress are the names of the nodes by their addresses.
	byAddress map[string]string
	pods      map[types.UID]*pod
	nodeIPs   *addresses
	podIPs    *addresses
}

// podsByNode is the index of the pods by their node's name.
const podsByNode = "fleet.nodeName"

// New makes a fleet. It registers what it needs with the informers and does nothing else before Run.
func New(cfg Config) (*Fleet, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	f := &Fleet{
		cfg: cfg, clock: cfg.Clock, woken: make(chan struct{}, 1), populated: make(chan struct{}),
		nodes: map[string]*node{}, byAddress: map[string]string{}, pods: map[types.UID]*pod{}, wheel: wheel.New[func(time.Time)](cfg.Clock.Now()),
	}
	var err error
	if f.rules, err = behavior.Compile(cfg.Rules); err != nil {
		return nil, err
	}
	if f.nodeIPs, err = newAddresses(cfg.NodeCIDR); err != nil {
		return nil, fmt.Errorf("simulated nodes: %w", err)
	}
	if f.podIPs, err = newAddresses(cfg.PodCIDR); err != nil {
		return nil, fmt.Errorf("pods of simulated nodes: %w", err)
	}
	return f, f.listen()
}

// listen registers with the informers.
func (f *Fleet) listen() error {
	f.informer.nodes = f.cfg.Informers.Core().V1().Nodes().Informer()
	f.informer.pods = f.cfg.Informers.Core().V1().Pods().Informer()
	err := f.informer.pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	_, err = f.informer.nodes.AddEventHandler(handlers(f.nodeChanged, f.nodeGone))
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	_, err = f.informer.pods.AddEventHandler(handlers(f.podChanged, f.podGone))
	if err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	return f.listenToObjects()
}

// handlers takes functions for what is there and for what was deleted.
func handlers[T any](changed, gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { changed(obj.(T)) },
		UpdateFunc: func(_, obj any) { changed(obj.(T)) },
		DeleteFunc: func(obj any) {
			if late, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = late.Obj
			}
			if t, ok := obj.(T); ok {
				gone(t)
			}
		},
	}
}

// Name is the fleet's name.
func (f *Fleet) Name() string { return Name }

// Populated is closed when all nodes of the groups are in the API, and Ready.
func (f *Fleet) Populated() <-chan struct{} { return f.populated }

// Run works until ctx is done. Nodes and pods then stay in the API as they are; the next fleet goes on with them.
func (f *Fleet) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName(Name))
	if !cache.WaitFor(ctx, "", f.informer.nodes.HasSyncedChecker(), f.informer.pods.HasSyncedChecker()) {
		return
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	if !f.startObjects(ctx, &parts) {
		return
	}
	f.openQueues()
	defer f.closeQueues()
	f.adoptAll()
	parts.Go(func() { f.keepTime(ctx) })
	parts.Go(func() { f.keepObjects(ctx) })
	parts.Go(func() { f.populate(ctx) })
	for range f.cfg.Writers {
		parts.Go(func() { work(f.writes.pods, func(uid types.UID) { f.writePod(ctx, uid) }) })
	}
	for range max(2, f.cfg.Writers/4) {
		parts.Go(func() { work(f.writes.leases, func(name string) { f.writeLease(ctx, name) }) })
		parts.Go(func() { work(f.writes.nodes, func(name string) { f.writeNode(ctx, name) }) })
	}
	<-ctx.Done()
}

func (f *Fleet) openQueues() {
	f.writes.leases, f.writes.nodes = workqueue.NewTyped[string](), workqueue.NewTyped[string]()
	f.writes.pods = workqueue.NewTyped[types.UID]()
}

func (f *Fleet) closeQueues() {
	f.mu.Lock()
	f.running = false
	f.mu.Unlock()
	f.writes.leases.ShutDown()
	f.writes.nodes.ShutDown()
	f.writes.pods.ShutDown()
}

// work hands keys on until the queue is shut down.
func work[K comparable](queue workqueue.TypedInterface[K], write func(K)) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		write(key)
		queue.Done(key)
	}
}

// adoptAll takes over what is in the API. Addresses that are in use come first, so that none is given away twice.
func (f *Fleet) adoptAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = true
	var own []*corev1.Node
	for _, obj := range f.informer.nodes.GetStore().List() {
		if n := obj.(*corev1.Node); simulated(n) {
			own = append(own, n)
			f.nodeIPs.keep(addressOf(n))
		}
	}
	for _, n := range own {
		for _, p := range f.podsOn(n.Name) {
			f.podIPs.keep(p.Status.PodIP)
		}
	}
	for _, n := range own {
		f.takeNode(n)
	}
}

func (f *Fleet) podsOn(node string) []*corev1.Pod {
	objects, err := f.informer.pods.GetIndexer().ByIndex(podsByNode, node)
	if err != nil {
		return nil // the index was registered by New
	}
	pods := make([]*corev1.Pod, len(objects))
	for i, obj := range objects {
		pods[i] = obj.(*corev1.Pod)
	}
	return pods
}
