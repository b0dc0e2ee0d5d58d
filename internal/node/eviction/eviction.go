// Package eviction decides which pod has to go when a node runs short of memory, and which pods have outgrown the disk space that they
// asked for. It looks at numbers and decides; the agent measures, ends the pods and tells the conditions.
//
// The order is Kubernetes': pods that use more than they requested before those that don't, then by priority, then by how far usage exceeds
// the request. Best-effort pods request nothing and so go first, guaranteed ones last.
package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Usage is a pod and the memory that its containers use, in bytes.
type Usage struct {
	Pod        *v1.Pod
	Containers map[string]int64
}

func (u *Usage) total() int64 {
	sum := int64(0)
	for _, bytes := range u.Containers {
		sum += bytes
	}
	return sum
}

func (u *Usage) request() int64 {
	requests := podresource.PodRequests(u.Pod, podresource.PodResourcesOptions{})
	return requests.Memory().Value()
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// systemCritical pods are never evicted by the node.
const systemCritical = 2000000000

// Rank puts the pods in the order in which they would have to go. Critical pods are left out.
func Rank(pods []Usage) []Usage {
	out := slices.DeleteFunc(slices.Clone(pods), func(u Usage) bool { return priority(u.Pod) >= systemCritical })
	slices.SortStableFunc(out, func(a, b Usage) int {
		overA, overB := a.total()-a.request(), b.total()-b.request()
		return cmp.Or(
			-compareBool(overA > 0, overB > 0),
			cmp.Compare(priority(a.Pod), priority(b.Pod)),
			-cmp.Compare(overA, overB),
			cmp.Compare(a.Pod.UID, b.Pod.UID),
		)
	})
	return out
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// Message tells why a pod was evicted for memory.
func Message(u Usage, threshold, available int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: memory. Threshold quantity: %s, available: %s. ", binary(threshold), kibi(available))
	for i := range u.Pod.Spec.Containers {
		c := &u.Pod.Spec.Containers[i]
		used, request := u.Containers[c.Name], c.Resources.Requests[v1.ResourceMemory]
		if used > request.Value() {
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of memory. ", c.Name, kibi(used), request.String())
		}
	}
	return b.String()
}

func binary(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// kibi rounds to whole KiB, as people are used to see it.
func kibi(bytes int64) string { return fmt.Sprintf("%dKi", bytes/1024) }

// OverLimit is the message for a pod of which an emptyDir volume has outgrown its limit, "" when none has. used tells the bytes in a volume.
func OverLimit(pod *v1.Pod, used func(volume *v1.Volume) int64) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil || v.EmptyDir.Medium != v1.StorageMediumDefault || v.EmptyDir.SizeLimit.IsZero() {
			continue
		}
		if used(v) > v.EmptyDir.SizeLimit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
		}
	}
	return ""
}
