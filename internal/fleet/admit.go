package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/hostport"
	"github.com/bayplan/bayplan/internal/qos"
)

// criticalPriority is from which on pods are critical: they come also to nodes under pressure.
const criticalPriority = 2_000_000_000

// load is what pods requested, CPU in thousandths, everything else as it is.
type load struct {
	pods   int64
	amount map[corev1.ResourceName]int64
}

func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// requestOf is what a pod requests.
func requestOf(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	list := requests.PodRequests(pod, requests.PodResourcesOptions{})
	out := make(map[corev1.ResourceName]int64, len(list))
	for name, q := range list {
		out[name] = amountOf(name, q)
	}
	return out
}

// charge notes that the pod has what it requests from its node, or that it has it no more.
func (p *pod) charge(request map[corev1.ResourceName]int64) {
	if p.node == nil {
		return
	}
	used := &p.node.used
	if p.charged != nil {
		used.pods--
		for name, n := range p.charged {
			used.amount[name] -= n
		}
	}
	p.charged = request
	if request != nil {
		used.pods++
		for name, n := range request {
			used.amount[name] += n
		}
	}
}

// admit lets a pod in that has come to its node, or ends it when there is no room. The scheduler has looked already, but several may bind at once, and some pods name
// their node themselves. Pods that were let in before, and those that end, need no room.
func (f *Fleet) admit(p *pod, now time.Time) {
	api := p.life.API()
	request := requestOf(api)
	if api.Status.StartTime == nil && api.DeletionTimestamp == nil && !p.life.Ended() {
		if reason, message := p.node.refuses(api, request); reason != "" {
			p.life.Refuse(now, reason, message)
			return
		}
	}
	if !p.life.Ended() {
		p.charge(request)
	}
}

// refuses tells why a node does not let a pod in, with the reasons and messages of the kubelet.
func (n *node) refuses(pod *corev1.Pod, request map[corev1.ResourceName]int64) (reason, message string) {
	if pod.Spec.NodeSelector != nil || pod.Spec.Affinity != nil && pod.Spec.Affinity.NodeAffinity != nil {
		if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n.api); !ok || err != nil {
			return "NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
		}
	}
	if short := n.shortFor(pod); len(short) > 0 {
		return "Evicted", fmt.Sprintf("The node had condition: [%s]. ", strings.Join(short, ", "))
	}
	if n.portsTaken(pod) {
		return "NodePorts", "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
	}
	if name, want, used, most := n.lacks(request); name != "" {
		return "OutOf" + string(name), fmt.Sprintf(
			"Pod was rejected: Node didn't have enough resource: %s, requested: %d, used: %d, capacity: %d", name, want, used, most)
	}
	return "", ""
}

// shortFor are the conditions for which a node does not let a pod in.
func (n *node) shortFor(pod *corev1.Pod) []string {
	if priority(pod) >= criticalPriority {
		return nil
	}
	var out []string
	faults := n.reportedFaults()
	for _, p := range pressures {
		if slices.Contains(faults, p.fault) {
			out = append(out, string(p.condition))
		}
	}
	memoryOnly := len(out) == 1 && slices.Contains(faults, v1alpha1.FaultMemoryPressure)
	if memoryOnly && (qos.Class(&pod.Spec) != corev1.PodQOSBestEffort || tolerates(pod, corev1.TaintNodeMemoryPressure)) {
		return nil
	}
	return out
}

func tolerates(pod *corev1.Pod, taint string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		all := t.Key == "" && t.Operator == corev1.TolerationOpExists
		return (all || t.Key == taint) && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
	})
}

// lacks names the first resource of which the node has not enough left.
func (n *node) lacks(request map[corev1.ResourceName]int64) (name corev1.ResourceName, want, used, most int64) {
	allocatable := n.api.Status.Allocatable
	if len(allocatable) == 0 {
		return "", 0, 0, 0 // the node has not reported what it has yet
	}
	if most := allocatable.Pods().Value(); n.used.pods+1 > most {
		return corev1.ResourcePods, 1, n.used.pods, most
	}
	names := make([]corev1.ResourceName, 0, len(request))
	for name := range request {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		want, used, most := request[name], n.used.amount[name], amountOf(name, allocatable[name])
		if want > 0 && used+want > most {
			return name, want, used, most
		}
	}
	return "", 0, 0, 0
}

// portsTaken tells whether a pod of the node that has not ended has a host port that this one wants.
func (n *node) portsTaken(pod *corev1.Pod) bool {
	wanted := hostPorts(pod)
	if len(wanted) == 0 {
		return false
	}
	for uid, p := range n.pods {
		if uid == pod.UID || p.life.Ended() {
			continue
		}
		if hostport.Clash(wanted, hostPorts(p.life.API())) {
			return true
		}
	}
	return false
}

// hostPorts are those that the pod's ordinary containers want.
func hostPorts(pod *corev1.Pod) (out []hostport.Port) {
	for i := range pod.Spec.Containers {
		out = append(out, hostport.Of(&pod.Spec.Containers[i])...)
	}
	return out
}
