package fleet

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

const (
	// statusMaxAge is after which the status is written even if nothing changed.
	statusMaxAge = 5 * time.Minute
	// nodePort is where the API of each simulated node seems to listen.
	nodePort = 10250
)

// DefaultCapacity is what a node has that says nothing about it.
func DefaultCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("500Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
}

// status is what a node with that address reports; what its Node says already, and what others have put there, stays.
func (f *Fleet) status(api *corev1.Node, address string, faults []v1alpha1.Fault, now time.Time) corev1.NodeStatus {
	s := *api.Status.DeepCopy()
	if len(s.Capacity) == 0 {
		s.Capacity = DefaultCapacity()
	}
	if _, ok := s.Capacity[corev1.ResourcePods]; !ok {
		s.Capacity[corev1.ResourcePods] = resource.MustParse("110")
	}
	s.Allocatable = allocatable(s.Capacity, s.Allocatable)
	if address != "" {
		s.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: api.Name}}
	}
	s.DaemonEndpoints.KubeletEndpoint.Port = nodePort
	f.nodeInfo(api, &s.NodeInfo)
	for _, c := range conditions(faults) {
		setCondition(&s, c, now)
	}
	return s
}

// allocatable is what pods can have of a capacity: all of it, unless less was said. Others may add to the capacity (extended resources), and take away again.
func allocatable(capacity, said corev1.ResourceList) corev1.ResourceList {
	out := make(corev1.ResourceList, len(capacity))
	for name, most := range capacity {
		out[name] = most
		if q, ok := said[name]; ok && q.Cmp(most) < 0 {
			out[name] = q
		}
	}
	return out
}

func (f *Fleet) nodeInfo(api *corev1.Node, info *corev1.NodeSystemInfo) {
	for into, value := range map[*string]string{
		&info.MachineID: "sim-" + api.Name, &info.SystemUUID: "sim-" + api.Name, &info.BootID: "sim-" + api.Name,
		&info.KernelVersion: "simulated", &info.OSImage: "Bayplan simulated node", &info.ContainerRuntimeVersion: "sim://1",
		&info.KubeletVersion: f.cfg.Version, &info.OperatingSystem: labelOr(api, corev1.LabelOSStable, "linux"),
		&info.Architecture: labelOr(api, corev1.LabelArchStable, "amd64"),
	} {
		if *into == "" {
			*into = value
		}
	}
}

func labelOr(n *corev1.Node, label, fallback string) string {
	if v := n.Labels[label]; v != "" {
		return v
	}
	return fallback
}

// pressure is a condition that tells whether a node is short of something, with what the kubelet says in each case.
type pressure struct {
	fault               v1alpha1.Fault
	condition           corev1.NodeConditionType
	enoughR, enoughText string
	shortR, shortText   string
}

var pressures = []pressure{
	{
		v1alpha1.FaultMemoryPressure, corev1.NodeMemoryPressure, "KubeletHasSufficientMemory", "kubelet has sufficient memory available",
		"KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
	},
	{
		v1alpha1.FaultDiskPressure, corev1.NodeDiskPressure, "KubeletHasNoDiskPressure", "kubelet has no disk pressure",
		"KubeletHasDiskPressure", "kubelet has disk pressure",
	},
	{
		v1alpha1.FaultPIDPressure, corev1.NodePIDPressure, "KubeletHasSufficientPID", "kubelet has sufficient PID available",
		"KubeletHasInsufficientPID", "kubelet has insufficient PID available",
	},
}

// conditions are those of a node with these faults.
func conditions(faults []v1alpha1.Fault) []corev1.NodeCondition {
	var out []corev1.NodeCondition
	for _, p := range pressures {
		c := corev1.NodeCondition{Type: p.condition, Status: corev1.ConditionFalse, Reason: p.enoughR, Message: p.enoughText}
		if slices.Contains(faults, p.fault) {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, p.shortR, p.shortText
		}
		out = append(out, c)
	}
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
	}
	if slices.Contains(faults, v1alpha1.FaultNotReady) {
		ready.Status, ready.Reason = corev1.ConditionFalse, "KubeletNotReady"
		ready.Message = "container runtime is down: the node is told to fail by its annotation " + v1alpha1.AnnotationFault
	}
	return append(out, ready)
}

func setCondition(s *corev1.NodeStatus, c corev1.NodeCondition, now time.Time) {
	at := metav1.NewTime(now.Truncate(time.Second))
	c.LastHeartbeatTime, c.LastTransitionTime = at, at
	i := slices.IndexFunc(s.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type })
	if i < 0 {
		s.Conditions = append(s.Conditions, c)
		return
	}
	if s.Conditions[i].Status == c.Status {
		c.LastTransitionTime = s.Conditions[i].LastTransitionTime
	}
	s.Conditions[i] = c
}

// labels are those that every node has, as far as its Node lacks them.
func missingLabels(n *corev1.Node) map[string]string {
	out := map[string]string{}
	for label, value := range map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	} {
		if _, ok := n.Labels[label]; !ok {
			out[label] = value
		}
	}
	return out
}

// writeNode brings the API to what is reported of a node.
func (f *Fleet) writeNode(ctx context.Context, name string) {
	nodes := f.cfg.Client.CoreV1().Nodes()
	metadata, status := f.nodePatches(name)
	if metadata != nil {
		_, err := nodes.Patch(ctx, name, types.MergePatchType, metadata, metav1.PatchOptions{})
		f.nodeWritten(ctx, name, err)
	}
	if status != nil {
		_, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		f.nodeWritten(ctx, name, err)
	}
}

// nodePatches are the patches that a Node needs, nil for those that would change nothing.
func (f *Fleet) nodePatches(name string) (metadata, status []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	if n == nil {
		return nil, nil
	}
	now := f.clock.Now()
	changes := map[string]any{}
	if missing := missingLabels(n.api); len(missing) > 0 {
		changes["labels"] = missing
	}
	if _, until, err := parseFaults(n.api.Annotations); err == nil && !until.IsZero() && !until.After(now) {
		changes["annotations"] = map[string]any{v1alpha1.AnnotationFault: nil, v1alpha1.AnnotationFaultUntil: nil}
	}
	if len(changes) > 0 {
		changes["uid"] = n.api.UID
		metadata, _ = json.Marshal(map[string]any{"metadata": changes}) // of strings
	}
	if n.silent() {
		return metadata, nil
	}
	want := f.status(n.api, n.address, n.reportedFaults(), now)
	if !worthWriting(&n.api.Status, &want, now) {
		return metadata, nil
	}
	return metadata, statusPatch(n.api.UID, &n.api.Status, &want)
}

// worthWriting tells whether anything but the heartbeats changed, or the last one is old.
func worthWriting(have, want *corev1.NodeStatus, now time.Time) bool {
	a, b := have.DeepCopy(), want.DeepCopy()
	last := reported(&corev1.Node{Status: *have})
	for _, s := range []*corev1.NodeStatus{a, b} {
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime, s.Conditions[i].LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
	}
	return !equality.Semantic.DeepEqual(a, b) || now.Sub(last) >= statusMaxAge
}

func statusPatch(uid types.UID, have, want *corev1.NodeStatus) []byte {
	old, err := json.Marshal(corev1.Node{Status: *have})
	if err != nil {
		return nil
	}
	next, err := json.Marshal(corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: uid}, Status: *want})
	if err != nil {
		return nil
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, next, corev1.Node{})
	if err != nil {
		return nil
	}
	return patch
}

func (f *Fleet) nodeWritten(ctx context.Context, name string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	switch {
	case n == nil || ctx.Err() != nil || apierrors.IsNotFound(err):
	case err == nil:
		n.failures = 0
	default:
		if !apierrors.IsConflict(err) {
			klog.FromContext(ctx).Error(err, "Cannot write a node; trying again", "node", name)
		}
		f.at(&n.again, f.clock.Now().Add(retryAfter(n.failures)))
		n.failures++
	}
}
