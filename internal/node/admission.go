package node

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/bayplan/bayplan/internal/hostport"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
)

// admit refuses a pod for which there is no room, nil lets it in. The scheduler has looked already, but several may bind at once. Pods
// that the runtime has were let in before, and those that are ended or being ended need no room.
func (p *pods) admit(ctx context.Context, pod *v1.Pod) *lifecycle.Ending {
	if p.known[pod.UID] != nil || pod.DeletionTimestamp != nil || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return nil
	}
	if pod.Status.StartTime != nil && pod.Status.Phase == v1.PodRunning {
		return nil // it ran here before the machine or the agent was stopped
	}
	if reason, message := p.node.misplaced(ctx, pod); reason != "" {
		return &lifecycle.Ending{Refused: true, Phase: v1.PodFailed, Reason: reason, Message: "Pod was rejected: " + message}
	}
	if conditions := p.node.refuses(pod); conditions != nil {
		return underPressure(conditions)
	}
	if p.portsTaken(pod) {
		return &lifecycle.Ending{
			Refused: true, Phase: v1.PodFailed, Reason: "NodePorts",
			Message: "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
		}
	}
	used, count := p.used(pod.UID)
	if reason, message := fits(resource.PodRequests(pod, resource.PodResourcesOptions{}), used, count, p.node.view.Allocatable); reason != "" {
		grace := time.Duration(0)
		return &lifecycle.Ending{Refused: true, Phase: v1.PodFailed, Reason: reason, Message: "Pod was rejected: " + message, Grace: &grace}
	}
	return nil
}

// misplaced tells whether the pod's selector or affinity doesn't fit the node, whose labels may have changed since it was scheduled. What
// the agent knows of its labels may be old, so that it looks again before it refuses a pod.
func (n *Node) misplaced(ctx context.Context, pod *v1.Pod) (reason, message string) {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	fits := func(node *v1.Node) bool {
		ok, err := required.Match(node)
		return ok && err == nil
	}
	node := n.current.Load()
	if node == nil || fits(node) {
		return "", ""
	}
	node, err := n.cfg.Client.CoreV1().Nodes().Get(ctx, n.cfg.Name, metav1.GetOptions{})
	if err != nil || fits(node) {
		return "", ""
	}
	return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
}

func tolerates(pod *v1.Pod, taint string) bool {
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if (t.Key == taint || t.Key == "" && t.Operator == v1.TolerationOpExists) && (t.Effect == "" || t.Effect == v1.TaintEffectNoSchedule) {
			return true
		}
	}
	return false
}

// portsTaken tells whether another pod of the node that has not ended has a host port that this one wants.
func (p *pods) portsTaken(pod *v1.Pod) bool {
	wanted := hostPorts(pod)
	if len(wanted) == 0 {
		return false
	}
	for uid, w := range p.workers {
		if uid == pod.UID || w.Finished() {
			continue
		}
		if hostport.Clash(wanted, hostPorts(w.Pod())) {
			return true
		}
	}
	return false
}

// hostPorts are those that the pod wants as long as it lives: of ordinary containers and sidecars.
func hostPorts(pod *v1.Pod) (out []hostport.Port) {
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; lifecycle.IsSidecar(c) {
			out = append(out, hostport.Of(c)...)
		}
	}
	for i := range pod.Spec.Containers {
		out = append(out, hostport.Of(&pod.Spec.Containers[i])...)
	}
	return out
}

// used is what the other pods of the node that have not ended were granted.
func (p *pods) used(but types.UID) (v1.ResourceList, int64) {
	used, count := v1.ResourceList{}, int64(0)
	for uid, w := range p.workers {
		if uid == but || w.Finished() {
			continue
		}
		count++
		for name, q := range resource.PodRequests(w.Granted(), resource.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(q)
			used[name] = sum
		}
	}
	return used, count
}

// room tells whether a resize of a pod fits: it is infeasible when the node is too small even when it is empty, and deferred when
// others have what it needs.
func (p *pods) room(pod *v1.Pod) (reason, message string, known bool) {
	request := resource.PodRequests(pod, resource.PodResourcesOptions{})
	allocatable := p.node.view.Allocatable
	if r, message := fits(request, nil, 0, allocatable); r != "" {
		return v1.PodReasonInfeasible, strings.Replace(message, "enough resource", "enough capacity", 1), true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.synced {
		return "", "", false
	}
	used, count := p.used(pod.UID)
	if r, message := fits(request, used, count, allocatable); r != "" {
		return v1.PodReasonDeferred, message, true
	}
	return "", "", true
}

// fits names the first resource that is short, in the order in which people look for it.
func fits(request, used v1.ResourceList, count int64, allocatable v1.ResourceList) (reason, message string) {
	if most := allocatable.Pods().Value(); count+1 > most {
		return refusal(v1.ResourcePods, 1, count, most)
	}
	for _, name := range append([]v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}, others(request)...) {
		r, u, a := request[name], used[name], allocatable[name]
		if r.IsZero() {
			continue
		}
		sum := r.DeepCopy()
		sum.Add(u)
		if sum.Cmp(a) <= 0 {
			continue
		}
		if name == v1.ResourceCPU {
			return refusal(name, r.MilliValue(), u.MilliValue(), a.MilliValue())
		}
		return refusal(name, r.Value(), u.Value(), a.Value())
	}
	return "", ""
}

func others(request v1.ResourceList) []v1.ResourceName {
	var out []v1.ResourceName
	for name := range request {
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage {
			out = append(out, name)
		}
	}
	return out
}

func refusal(name v1.ResourceName, requested, used, capacity int64) (reason, message string) {
	return "OutOf" + string(name),
		fmt.Sprintf("Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, requested, used, capacity)
}
