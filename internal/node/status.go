package node

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/component-helpers/apimachinery/lease"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

const (
	statusPeriod = 10 * time.Second
	// statusMaxAge is after which the status is written even if nothing changed.
	statusMaxAge  = 5 * time.Minute
	leaseDuration = 40 // seconds
	leasePeriod   = 10 * time.Second
	// maxImages bounds the images that a status names, as the scheduler and readers expect.
	maxImages = 50
)

// runtimeHealth is what the runtime said last.
type runtimeHealth struct {
	ready   bool
	message string
}

// checkRuntime asks the runtime whether it and its network are ready.
func (n *Node) checkRuntime(ctx context.Context) {
	h := runtimeHealth{ready: true}
	resp, err := n.cfg.Runtime.Status(ctx, &cri.StatusRequest{})
	if err != nil {
		h = runtimeHealth{message: fmt.Sprintf("container runtime is down: %v", err)}
	} else {
		for _, c := range resp.GetStatus().GetConditions() {
			if !c.Status && (c.Type == cri.RuntimeReady || c.Type == cri.NetworkReady) {
				h.ready = false
				what := map[string]string{cri.RuntimeReady: "container runtime", cri.NetworkReady: "container runtime network"}[c.Type]
				h.message = fmt.Sprintf("%s not ready: %s=false reason:%s message:%s", what, c.Type, c.Reason, c.Message)
			}
		}
	}
	n.mu.Lock()
	n.health = h
	n.mu.Unlock()
}

// status is the Node's status now. old, if any, tells since when conditions hold, and what others have put there.
func (n *Node) status(ctx context.Context, old *v1.NodeStatus) v1.NodeStatus {
	s := v1.NodeStatus{}
	if old != nil {
		s = *old.DeepCopy()
	}
	s.Capacity, s.Allocatable = merge(s.Capacity, n.view.Capacity), merge(s.Allocatable, n.view.Allocatable)
	s.Addresses = []v1.NodeAddress{
		{Type: v1.NodeInternalIP, Address: n.cfg.Address.String()}, {Type: v1.NodeHostName, Address: n.cfg.Name},
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = n.port()
	s.NodeInfo = v1.NodeSystemInfo{
		MachineID: n.machine.machineID, SystemUUID: n.machine.systemUUID, BootID: n.machine.bootID, KernelVersion: n.machine.kernel,
		OSImage: n.machine.osImage, ContainerRuntimeVersion: n.runtime.RuntimeName + "://" + n.runtime.RuntimeVersion,
		KubeletVersion: n.cfg.Version, OperatingSystem: goruntime.GOOS, Architecture: goruntime.GOARCH,
	}
	if images, err := n.images(ctx); err == nil {
		s.Images = images
	} else {
		n.failures.Error(ctx, err, "Cannot list images")
	}
	n.conditions(&s)
	return s
}

// merge keeps resources that others have added (extended resources).
func merge(have, own v1.ResourceList) v1.ResourceList {
	out := own.DeepCopy()
	for name, q := range have {
		if _, ok := out[name]; !ok {
			out[name] = q
		}
	}
	return out
}

func (n *Node) conditions(s *v1.NodeStatus) {
	n.mu.Lock()
	health := n.health
	n.mu.Unlock()
	ready := v1.NodeCondition{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if !health.ready {
		ready.Status, ready.Reason, ready.Message = v1.ConditionFalse, "KubeletNotReady", health.message
	}
	own := append(n.pressureConditions(), ready)
	now := metav1.NewTime(n.cfg.Clock.Now())
	for _, c := range own {
		c.LastHeartbeatTime, c.LastTransitionTime = now, now
		i := slices.IndexFunc(s.Conditions, func(o v1.NodeCondition) bool { return o.Type == c.Type })
		if i < 0 {
			s.Conditions = append(s.Conditions, c)
			continue
		}
		if s.Conditions[i].Status == c.Status {
			c.LastTransitionTime = s.Conditions[i].LastTransitionTime
		} else {
			n.tellCondition(c)
		}
		s.Conditions[i] = c
	}
}

// tellCondition records that a condition has turned.
func (n *Node) tellCondition(c v1.NodeCondition) {
	names := [2]string{"NodeNotReady", "NodeReady"}
	for _, p := range pressures {
		if p.condition == c.Type {
			names = p.event
		}
	}
	reason := names[0]
	if c.Status == v1.ConditionTrue {
		reason = names[1]
	}
	n.tell(v1.EventTypeNormal, reason, fmt.Sprintf("Node %s status is now: %s", n.cfg.Name, reason))
}

// tell records an event on the Node, which is known by its name as the kubelet's events are.
func (n *Node) tell(eventType, reason, message string) {
	ref := &v1.ObjectReference{Kind: "Node", Name: n.cfg.Name, UID: types.UID(n.cfg.Name)}
	n.deps.Recorder.Event(ref, eventType, reason, message)
}

// images are the largest images of the node, with all their names.
func (n *Node) images(ctx context.Context) ([]v1.ContainerImage, error) {
	resp, err := n.cfg.Runtime.ListImages(ctx, &cri.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	var out []v1.ContainerImage
	for _, i := range resp.Images {
		names := slices.Concat(i.RepoDigests, i.RepoTags)
		if len(names) > 0 {
			out = append(out, v1.ContainerImage{Names: names, SizeBytes: int64(i.Size)})
		}
	}
	slices.SortFunc(out, func(a, b v1.ContainerImage) int {
		return cmp.Or(cmp.Compare(b.SizeBytes, a.SizeBytes), slices.Compare(a.Names, b.Names))
	})
	return out[:min(maxImages, len(out))], nil
}

// keepStatus registers the Node, then keeps its Lease and its status: what changed is written at once, the rest every five minutes.
func (n *Node) keepStatus(ctx context.Context) {
	node := n.register(ctx)
	if node == nil {
		return
	}
	n.current.Store(node)
	n.pods.static.wake() // their mirrors belong to the Node
	n.tell(v1.EventTypeNormal, "Starting", "Starting the node agent.")
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
	heartbeat := lease.NewController(n.cfg.Clock, n.cfg.Client, n.cfg.Name, leaseDuration, nil, leasePeriod, n.cfg.Name, v1.NamespaceNodeLease,
		func(l *coordination.Lease) error {
			l.OwnerReferences = []metav1.OwnerReference{owner}
			return nil
		})
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { heartbeat.Run(ctx) })
	ticker := n.cfg.Clock.NewTicker(statusPeriod)
	defer ticker.Stop()
	for {
		node = n.writeStatus(ctx, node)
		n.current.Store(node)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-n.changed:
		}
		n.checkRuntime(ctx)
	}
}

// writeStatus writes the status if it changed or is old, and returns the Node as the API has it then.
func (n *Node) writeStatus(ctx context.Context, node *v1.Node) *v1.Node {
	const failed = "Cannot write the node's status"
	want := n.status(ctx, &node.Status)
	if !n.worthWriting(&node.Status, &want) {
		return node
	}
	patch, err := nodePatch(&node.Status, &want)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot make a patch of the node's status")
		return node
	}
	written, err := n.cfg.Client.CoreV1().Nodes().Patch(ctx, n.cfg.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	switch {
	case err == nil:
		n.failures.Over(failed)
		return written
	case ctx.Err() != nil:
		return node
	case apierrors.IsNotFound(err):
		klog.FromContext(ctx).Info("The node was deleted; registering it again")
		if again := n.register(ctx); again != nil {
			return again
		}
	default:
		n.failures.Error(ctx, err, failed)
	}
	return node
}

// worthWriting tells whether anything but the heartbeats changed, or the last heartbeat is old.
func (n *Node) worthWriting(have, want *v1.NodeStatus) bool {
	a, b := have.DeepCopy(), want.DeepCopy()
	var last time.Time
	for _, s := range []*v1.NodeStatus{a, b} {
		for i := range s.Conditions {
			if s == a && s.Conditions[i].Type == v1.NodeReady {
				last = s.Conditions[i].LastHeartbeatTime.Time
			}
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
			s.Conditions[i].LastTransitionTime = metav1.Time{}
		}
	}
	return !equality.Semantic.DeepEqual(a, b) || n.cfg.Clock.Since(last) >= statusMaxAge
}

func nodePatch(have, want *v1.NodeStatus) ([]byte, error) {
	old, err := json.Marshal(v1.Node{Status: *have})
	if err != nil {
		return nil, err
	}
	next, err := json.Marshal(v1.Node{Status: *want})
	if err != nil {
		return nil, err
	}
	return strategicpatch.CreateTwoWayMergePatch(old, next, v1.Node{})
}
