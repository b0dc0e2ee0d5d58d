// Package eviction decides which pod has to go when a node runs short of memory, disk space or process numbers, and which pods have outgrown the disk
// space that they asked for. It looks at numbers and decides; the agent measures, ends the pods and tells the conditions.
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

// PIDs is the resource that numbers of processes are. Nobody can request it.
const PIDs v1.ResourceName = "pids"

// Shortage is a resource of which less than the threshold is left, both in bytes, or processes.
type Shortage struct {
	Resource             v1.ResourceName
	Threshold, Available int64
}

// Usage is what a pod uses of one resource: bytes, or processes.
type Usage struct {
	Pod *v1.Pod
	// Containers is what each container uses by itself.
	Containers map[string]int64
	// Shared is what they use together, or what can't be told apart.
	Shared int64
}

func (u *Usage) total() int64 {
	sum := u.Shared
	for _, n := range u.Containers {
		sum += n
	}
	return sum
}

func (u *Usage) request(name v1.ResourceName) int64 {
	requests := podresource.PodRequests(u.Pod, podresource.PodResourcesOptions{})
	q := requests[name]
	return q.Value()
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// systemCritical pods are never evicted by the node.
const systemCritical = 2000000000

// Critical tells whether a pod is one that the node needs: it is neither evicted nor refused under pressure.
func Critical(pod *v1.Pod) bool { return priority(pod) >= systemCritical }

// Rank puts the pods in the order in which they would have to go for the resource. Critical pods are left out.
func Rank(name v1.ResourceName, pods []Usage) []Usage {
	out := slices.DeleteFunc(slices.Clone(pods), func(u Usage) bool { return Critical(u.Pod) })
	slices.SortStableFunc(out, func(a, b Usage) int {
		overA, overB := a.total()-a.request(name), b.total()-b.request(name)
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

// Message tells why a pod was evicted.
func (s Shortage) Message(u Usage) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %s. Threshold quantity: %s, available: %s. ", s.Resource, s.threshold(), s.amount(s.Available))
	for i := range u.Pod.Spec.Containers {
		c := &u.Pod.Spec.Containers[i]
		used, request := u.Containers[c.Name], c.Resources.Requests[s.Resource]
		if used > request.Value() {
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %s. ", c.Name, s.amount(used), request.String(), s.Resource)
		}
	}
	return b.String()
}

func (s Shortage) threshold() string {
	if s.Resource == PIDs {
		return fmt.Sprint(s.Threshold)
	}
	return resource.NewQuantity(s.Threshold, resource.BinarySI).String()
}

// amount rounds bytes to whole KiB, as people are used to see them.
func (s Shortage) amount(n int64) string {
	if s.Resource == PIDs {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%dKi", n/1024)
}
