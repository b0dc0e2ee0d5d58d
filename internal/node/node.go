package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/probe"
	"github.com/bayplan/bayplan/internal/node/repeated"
	"github.com/bayplan/bayplan/internal/node/translate"
	"github.com/bayplan/bayplan/internal/node/volume"
	"github.com/bayplan/bayplan/internal/node/worker"
)

// Node is one node agent. Make it with New.
type Node struct {
	cfg     Config
	machine machine
	runtime *cri.VersionResponse
	view    translate.Node
	deps    *worker.Deps
	pods    *pods
	events  record.EventBroadcaster

	// current is the Node as the API had it last, nil before it is registered.
	current atomic.Pointer[v1.Node]
	// changed asks for a look at the node's status.
	changed chan struct{}

	volumes *volume.Manager

	mu     sync.Mutex
	health runtimeHealth
	// pressure is when the node was last short of something, for what it is short of or was a short while ago.
	pressure map[v1.NodeConditionType]time.Time

	failures repeated.Log
}

// New makes an agent. It asks the runtime for its version and looks at the machine, but changes nothing.
func New(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	version, err := cfg.Runtime.Version(ctx, &cri.VersionRequest{})
	if err != nil {
		return nil, fmt.Errorf("node %s: the container runtime doesn't tell its version: %w", cfg.Name, err)
	}
	if err := os.MkdirAll(filepath.Join(cfg.RootDir, "pods"), 0o750); err != nil {
		return nil, fmt.Errorf("node %s: %w", cfg.Name, err)
	}
	m, err := inspectMachine(cfg.RootDir)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", cfg.Name, err)
	}
	if cfg.DiskThreshold == 0 {
		cfg.DiskThreshold = min(m.disk/20, maxDiskThreshold)
	}
	n := &Node{cfg: cfg, machine: m, runtime: version, changed: make(chan struct{}, 1), pressure: map[v1.NodeConditionType]time.Time{}}
	n.view = n.makeView()
	n.events = record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx))) // ctx may be that of the start alone; Run ends it
	recorder := n.events.NewRecorder(scheme.Scheme, v1.EventSource{Component: "kubelet", Host: cfg.Name})
	view := func() *translate.Node { return &n.view }
	src := &sources{client: cfg.Client}
	n.volumes = volume.New(cfg.Client, src, view, cfg.Clock)
	n.deps = &worker.Deps{
		Client: cfg.Client, Runtime: cfg.Runtime, RuntimeName: version.RuntimeName, Recorder: recorder, Clock: cfg.Clock, Node: view, Sources: src,
		Images:  image.NewPuller(cfg.Runtime, cfg.Clock, cfg.ParallelPulls, n.touch),
		Volumes: n.volumes,
		Probes:  &probe.Prober{Runtime: cfg.Runtime, Dial: cfg.Dial, Clock: cfg.Clock},
		Cgroups: cfg.Cgroups, Users: &userIDs{root: cfg.RootDir},
	}
	n.pods = newPods(n.deps, n)
	n.deps.Room = n.pods.room
	return n, nil
}

// makeView is what the translation of pods has to know of the node.
func (n *Node) makeView() translate.Node {
	capacity := n.capacity()
	view := translate.Node{
		Name: n.cfg.Name, Hostname: n.cfg.Name, IPs: []string{n.cfg.Address.String()}, RootDir: n.cfg.RootDir, CgroupRoot: n.cfg.CgroupRoot,
		ClusterDomain: n.cfg.ClusterDomain, Capacity: capacity, Allocatable: n.allocatable(capacity), HostResolv: n.machine.resolv, PodPIDs: n.cfg.PodPIDs,
	}
	for _, a := range n.cfg.ClusterDNS {
		view.ClusterDNS = append(view.ClusterDNS, a.String())
	}
	return view
}

// Run works until ctx ends. Pods are left as they are, then and whenever it fails.
func (n *Node) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("node", n.cfg.Name))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	n.events.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: n.cfg.Client.CoreV1().Events("")})
	defer n.events.Shutdown()
	known, err := n.pods.look(ctx)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.cfg.Name, err)
	}
	if err := n.ensureCgroups(ctx, known); err != nil {
		return fmt.Errorf("node %s: %w", n.cfg.Name, err)
	}
	n.checkRuntime(ctx)
	var parts sync.WaitGroup
	defer parts.Wait()
	if n.cfg.Listener != nil {
		parts.Go(func() {
			if err := n.serve(ctx); err != nil {
				cancel(fmt.Errorf("node %s: node API: %w", n.cfg.Name, err))
			}
		})
	}
	parts.Go(func() { n.pods.watchRuntime(ctx) })
	parts.Go(func() { n.pods.run(ctx, known) })
	parts.Go(func() { n.keepStatus(ctx) })
	parts.Go(func() { n.keepHouse(ctx) })
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() {
		return cause
	}
	return nil
}

// Shutdown ends all pods of the node in order, after Run has returned: ordinary ones first, then critical ones. Their API objects stay, and
// the next Run runs them again. ctx bounds how long that may take.
func (n *Node) Shutdown(ctx context.Context) error {
	return n.pods.interrupt(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("node", n.cfg.Name)))
}

// Name is the name of the Node.
func (n *Node) Name() string { return n.cfg.Name }

// touch asks for a look at the node's status.
func (n *Node) touch() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}
