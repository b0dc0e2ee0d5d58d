package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"

	"github.com/bayplan/bayplan/internal/node/cgroup"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/translate"
	"github.com/bayplan/bayplan/internal/node/worker"
)

// Cgroups makes the cgroups of the node, its QoS classes and its pods. Package cgroup has the real one.
type Cgroups interface {
	worker.Cgroups
	// EnsureNode makes the cgroups of the node and its classes; shares is the node's CPU share, memory what all its pods together may have, in bytes.
	EnsureNode(ctx context.Context, shares, memory int64) error
	// SetClass sets the CPU share of a class.
	SetClass(ctx context.Context, class string, shares int64) error
	// Retain removes the cgroups of all pods but those to keep.
	Retain(ctx context.Context, keep func(uid string) bool)
}

// ensureCgroups makes what the pods' cgroups are in, and removes those of pods that neither run nor are known any more.
func (n *Node) ensureCgroups(ctx context.Context, known map[types.UID]*v1.Pod) error {
	if n.cfg.Cgroups == nil {
		return nil
	}
	if err := n.cfg.Cgroups.EnsureNode(ctx, translate.Shares(n.view.Allocatable.Cpu().MilliValue()), n.forPods(v1.ResourceMemory)); err != nil {
		return err
	}
	n.cfg.Cgroups.Retain(ctx, func(uid string) bool { return known[types.UID(uid)] != nil })
	return nil
}

// burstableCPU adds up what the burstable pods of the node ask for, in thousandths of a core: the share of their class among the guaranteed pods.
type burstableCPU struct {
	requests map[types.UID]int64
	sum      int64
}

func (b *burstableCPU) set(uid types.UID, milliCPU int64) {
	b.sum += milliCPU - b.requests[uid]
	if milliCPU == 0 {
		delete(b.requests, uid)
		return
	}
	if b.requests == nil {
		b.requests = map[types.UID]int64{}
	}
	b.requests[uid] = milliCPU
}

// countCPU counts a pod that came or changed. Those that have ended ask for nothing. p.mu is held.
func (p *pods) countCPU(ctx context.Context, pod *v1.Pod) {
	var milliCPU int64
	over := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if !over && lifecycle.QOSClass(pod) == v1.PodQOSBurstable {
		requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
		milliCPU = requests.Cpu().MilliValue()
	}
	p.shareCPU(ctx, pod.UID, milliCPU)
}

// shareCPU gives the burstable class what its pods ask for together. p.mu is held.
func (p *pods) shareCPU(ctx context.Context, uid types.UID, milliCPU int64) {
	if p.node.cfg.Cgroups == nil {
		return
	}
	p.cpu.set(uid, milliCPU)
	if err := p.node.cfg.Cgroups.SetClass(ctx, cgroup.Burstable, translate.Shares(p.cpu.sum)); err != nil {
		p.node.failures.Error(ctx, err, "Cannot set the CPU share of burstable pods")
	}
}
