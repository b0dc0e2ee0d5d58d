package shape

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	helpers "k8s.io/component-helpers/resource"
)

// What a container that names no request counts as when nodes are scored, so that nodes full of such pods do not look
// empty.
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 << 20
)

var scoringDefaults = v1.ResourceList{
	v1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
	v1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.BinarySI),
}

// sums is the working space of one pod's request calculation.
type sums struct {
	requests         []Request
	scoring, counted [2]int64
}

// sum adds up what the pod requests. Most pods have plain containers only and are summed here without an allocation;
// init containers, sidecars, pod-level resources and resizes go through the library that defines their rules.
func (t *Table) sum(pod *v1.Pod, out *sums) {
	out.requests, out.scoring, out.counted = out.requests[:0], [2]int64{}, [2]int64{}
	if !plain(pod) {
		t.sumByLibrary(pod, out)
		return
	}
	for i := range pod.Spec.Containers {
		requests := pod.Spec.Containers[i].Resources.Requests
		t.add(requests, out)
		out.scoring[CPU] += scored(requests, v1.ResourceCPU, defaultMilliCPU)
		out.scoring[Memory] += scored(requests, v1.ResourceMemory, defaultMemory)
	}
	if pod.Spec.Overhead != nil {
		t.add(pod.Spec.Overhead, out)
		out.scoring[CPU] += scored(pod.Spec.Overhead, v1.ResourceCPU, 0)
		out.scoring[Memory] += scored(pod.Spec.Overhead, v1.ResourceMemory, 0)
	}
	out.counted = out.scoring
	t.finish(out)
}

// plain reports whether the pod's requests are simply the sum over its containers: no init containers, no pod-level
// resources, and no resize that has been asked for but not done.
func plain(pod *v1.Pod) bool {
	if len(pod.Spec.InitContainers) > 0 || pod.Spec.Resources != nil || len(pod.Status.AllocatedResources) > 0 {
		return false
	}
	for i := range pod.Spec.Containers {
		if !whole(pod.Spec.Containers[i].Resources.Requests) {
			return false
		}
	}
	if !whole(pod.Spec.Overhead) {
		return false
	}
	for i := range pod.Status.ContainerStatuses {
		if !settled(pod, &pod.Status.ContainerStatuses[i]) {
			return false
		}
	}
	return true
}

// whole reports whether amounts can be added up in their units. Parts of a unit are rounded up only in the sum.
func whole(list v1.ResourceList) bool {
	for name, quantity := range list {
		if _, ok := quantity.AsInt64(); ok {
			continue
		}
		if name != v1.ResourceCPU || resource.NewMilliQuantity(quantity.MilliValue(), resource.DecimalSI).Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}

// settled reports whether the node runs the container with what its spec requests.
func settled(pod *v1.Pod, status *v1.ContainerStatus) bool {
	if status.Resources == nil && status.AllocatedResources == nil {
		return true
	}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		if container.Name != status.Name {
			continue
		}
		return (status.Resources == nil || same(status.Resources.Requests, container.Resources.Requests)) &&
			(status.AllocatedResources == nil || same(status.AllocatedResources, container.Resources.Requests))
	}
	return true
}

func same(a, b v1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

func (t *Table) sumByLibrary(pod *v1.Pod, out *sums) {
	options := helpers.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}
	requests := helpers.PodRequests(pod, options)
	t.add(requests, out)
	missing := scoringDefaults
	if helpers.IsPodLevelRequestsSet(pod) {
		missing = maps.Clone(missing)
		maps.DeleteFunc(missing, func(name v1.ResourceName, _ resource.Quantity) bool { _, named := requests[name]; return named })
	}
	out.counted = withDefaults(pod, options, missing)
	out.scoring = withDefaults(pod, helpers.PodResourcesOptions{SkipPodLevelResources: true}, scoringDefaults)
	t.finish(out)
}

// withDefaults sums CPU and memory where containers that do not name a resource have the default given for it, if any.
func withDefaults(pod *v1.Pod, options helpers.PodResourcesOptions, defaults v1.ResourceList) [2]int64 {
	options.NonMissingContainerRequests = defaults
	list := helpers.PodRequests(pod, options)
	return [2]int64{scored(list, v1.ResourceCPU, 0), scored(list, v1.ResourceMemory, 0)}
}

func (t *Table) add(list v1.ResourceList, out *sums) {
	t.Resources.learn(list)
	for name, quantity := range list {
		if name == v1.ResourcePods {
			continue
		}
		index := t.Resources.Index(name)
		amount := Amount(name, &quantity)
		at := slices.IndexFunc(out.requests, func(r Request) bool { return r.Resource == index })
		if at < 0 {
			out.requests = append(out.requests, Request{Resource: index, Amount: amount})
			continue
		}
		out.requests[at].Amount += amount
	}
}

// finish drops what is zero and sorts by index: the order of a map must not show.
func (t *Table) finish(out *sums) {
	out.requests = slices.DeleteFunc(out.requests, func(r Request) bool { return r.Amount == 0 })
	slices.SortFunc(out.requests, func(a, b Request) int { return a.Resource - b.Resource })
}

func scored(list v1.ResourceList, name v1.ResourceName, missing int64) int64 {
	quantity, ok := list[name]
	if !ok {
		return missing
	}
	return Amount(name, &quantity)
}

// Amount is a quantity in the unit of its resource: milli-CPUs for CPU, whole units rounded up for all others.
func Amount(name v1.ResourceName, quantity *resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}
