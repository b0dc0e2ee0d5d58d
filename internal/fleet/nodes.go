package fleet

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// node is a simulated node.
type node struct {
	fleet   *Fleet
	name    string
	api     *corev1.Node
	address string
	pods    map[types.UID]*pod
	// used is what its pods have from it that have not ended.
	used   load
	faults []v1alpha1.Fault
	images map[string]bool
	// pressed is when the node was last short of memory because of what its pods use, zero when that is long ago.
	pressed time.Time

	// heartbeat is due when the lease has to be renewed, recovery when a fault is over by itself.
	heartbeat, recovery timer
	// again is due when the Node has to be written again after a failure.
	again timer
	// lease is as it was last written, nil before.
	lease    *coordination.Lease
	failures int
}

// simulated reports whether a Node belongs to the fleet.
func simulated(n *corev1.Node) bool { return n.Labels[v1alpha1.LabelSimulated] == "true" }

func addressOf(n *corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// nodeChanged is told by the informer.
func (f *Fleet) nodeChanged(api *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.running {
		return
	}
	n := f.nodes[api.Name]
	switch {
	case n != nil && n.api.UID != api.UID:
		// Another node has the name now.
		f.dropNode(n)
		fallthrough
	case n == nil:
		if simulated(api) {
			f.takeNode(api)
		}
	case !simulated(api):
		f.dropNode(n)
	default:
		f.updateNode(n, api)
	}
}

// nodeGone is told by the informer.
func (f *Fleet) nodeGone(api *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nodes[api.Name]; n != nil && n.api.UID == api.UID {
		f.dropNode(n)
		f.groupChanged(api)
	}
}

// takeNode takes a Node over, and the pods on it.
func (f *Fleet) takeNode(api *corev1.Node) {
	n := &node{fleet: f, name: api.Name, api: api, address: addressOf(api), pods: map[types.UID]*pod{}, used: load{amount: map[corev1.ResourceName]int64{}}}
	if n.address == "" {
		n.address, _ = f.nodeIPs.take()
	}
	f.nodeIPs.keep(n.address)
	f.nodes[n.name], f.byAddress[n.address] = n, n.name
	n.heartbeat.Value = func(now time.Time) { f.beat(n, now) }
	n.recovery.Value = func(time.Time) { f.writes.nodes.Add(n.name) }
	n.again.Value = n.recovery.Value
	now := f.clock.Now()
	n.look(now)
	f.writes.nodes.Add(n.name)
	f.writes.leases.Add(n.name)
	f.at(&n.heartbeat, now.Add(f.phase(n.name)))
	for _, p := range f.podsOn(n.name) {
		f.takePod(n, p)
	}
}

// phase spreads the heartbeats of all nodes over the period.
func (f *Fleet) phase(name string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return time.Duration(h.Sum64()>>1) % f.cfg.LeasePeriod
}

// dropNode forgets a node. Its pods stay in the API until others remove them.
func (f *Fleet) dropNode(n *node) {
	delete(f.nodes, n.name)
	delete(f.byAddress, n.address)
	f.wheel.Stop(&n.heartbeat)
	f.wheel.Stop(&n.recovery)
	f.wheel.Stop(&n.again)
	f.nodeIPs.free(n.address)
	for _, p := range n.pods {
		p.node = nil
		f.wheel.Stop(&p.timer)
	}
}

func (f *Fleet) updateNode(n *node, api *corev1.Node) {
	n.api = api
	now := f.clock.Now()
	if len(api.Status.Capacity) != len(api.Status.Allocatable) {
		f.writes.nodes.Add(n.name)
	}
	if n.look(now) {
		f.writes.nodes.Add(n.name)
		f.writes.leases.Add(n.name)
		for _, p := range n.pods {
			f.step(p, now)
		}
	}
}

// look reads what the Node says about itself. It reports whether its faults have changed.
func (n *node) look(now time.Time) bool {
	n.images = map[string]bool{}
	for _, image := range n.api.Status.Images {
		for _, name := range image.Names {
			n.images[name] = true
		}
	}
	faults, until, err := parseFaults(n.api.Annotations)
	if err != nil {
		n.fleet.cfg.Recorder.Event(n.api, corev1.EventTypeWarning, "InvalidFault", err.Error())
	}
	n.fleet.wheel.Stop(&n.recovery)
	switch {
	case until.IsZero():
	case until.After(now):
		n.fleet.at(&n.recovery, until)
	default:
		faults = nil
		n.fleet.writes.nodes.Add(n.name) // the annotations go
	}
	changed := !slices.Equal(faults, n.faults)
	n.faults = faults
	return changed
}

func (n *node) has(fault v1alpha1.Fault) bool { return slices.Contains(n.faults, fault) }

// silent nodes tell nothing of themselves, nor of their pods.
func (n *node) silent() bool { return n.has(v1alpha1.FaultSilent) || n.has(v1alpha1.FaultUnreachable) }

// Address implements life.Host.
func (n *node) Address() string { return n.address }

// Assign implements life.Host.
func (n *node) Assign() string {
	ip, _ := n.fleet.podIPs.take()
	return ip
}

// HasImage implements life.Host.
func (n *node) HasImage(image string) bool { return n.images[image] }

// Starts implements life.Host.
func (n *node) Starts() bool { return !n.has(v1alpha1.FaultNotReady) }

// beat is the heartbeat of a node: the lease is renewed, the status looked at and, under pressure, a pod evicted.
func (f *Fleet) beat(n *node, now time.Time) {
	f.at(&n.heartbeat, now.Add(f.cfg.LeasePeriod))
	if n.silent() || !f.running {
		return
	}
	f.writes.leases.Add(n.name)
	f.relieve(n, now)
	if now.Sub(reported(n.api)) >= statusMaxAge {
		f.writes.nodes.Add(n.name)
	}
}

// reported is when the node last wrote its status.
func reported(n *corev1.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// parseFaults reads a Node's annotations.
func parseFaults(annotations map[string]string) (faults []v1alpha1.Fault, until time.Time, err error) {
	text := strings.TrimSpace(annotations[v1alpha1.AnnotationFault])
	if text == "" {
		return nil, until, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		fault := v1alpha1.Fault(strings.TrimSpace(name))
		if !slices.Contains(v1alpha1.Faults(), fault) {
			return nil, until, fmt.Errorf("annotation %s: there is no fault %q, but %v", v1alpha1.AnnotationFault, fault, v1alpha1.Faults())
		}
		faults = append(faults, fault)
	}
	slices.Sort(faults)
	if text := annotations[v1alpha1.AnnotationFaultUntil]; text != "" {
		if until, err = time.Parse(time.RFC3339, text); err != nil {
			return nil, time.Time{}, fmt.Errorf("annotation %s: %q is no time, as 2026-01-02T15:04:05Z is", v1alpha1.AnnotationFaultUntil, text)
		}
	}
	return slices.Compact(faults), until, nil
}
