package eviction

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	podresource "k8s.io/component-helpers/resource"
)

// Disk is what a pod takes of the node's disk, in bytes.
type Disk struct {
	// Containers is what each container wrote: beside its image, and to its log.
	Containers map[string]int64
	// Volumes is what is in each of the pod's emptyDir volumes on disk.
	Volumes map[string]int64
}

// Usage is the same as a usage of ephemeral storage.
func (d Disk) Usage(pod *v1.Pod) Usage {
	u := Usage{Pod: pod, Containers: d.Containers}
	for _, n := range d.Volumes {
		u.Shared += n
	}
	return u
}

// Bounded tells whether there is anything in the pod's manifest that its disk usage could be beyond.
func Bounded(pod *v1.Pod) bool {
	limits := podresource.PodLimits(pod, podresource.PodResourcesOptions{})
	if _, set := limits[v1.ResourceEphemeralStorage]; set {
		return true
	}
	for i := range pod.Spec.Volumes {
		if bounded(&pod.Spec.Volumes[i]) {
			return true
		}
	}
	return false
}

// bounded tells whether a volume is on disk and has a limit.
func bounded(v *v1.Volume) bool {
	return OnDisk(v) && v.EmptyDir.SizeLimit != nil && !v.EmptyDir.SizeLimit.IsZero()
}

// OnDisk tells whether a volume is an emptyDir on disk.
func OnDisk(v *v1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == v1.StorageMediumDefault
}

// OverLimit is the message for a pod that takes more of the disk than it may, "" for others: in a volume, in all, or in a container.
func OverLimit(pod *v1.Pod, d Disk) string {
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; bounded(v) && d.Volumes[v.Name] > v.EmptyDir.SizeLimit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, v.EmptyDir.SizeLimit.String())
		}
	}
	limits := podresource.PodLimits(pod, podresource.PodResourcesOptions{})
	limit, set := limits[v1.ResourceEphemeralStorage]
	if usage := d.Usage(pod); set && usage.total() > limit.Value() {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			limit, set := list[i].Resources.Limits[v1.ResourceEphemeralStorage]
			if set && d.Containers[list[i].Name] > limit.Value() {
				return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", list[i].Name, limit.String())
			}
		}
	}
	return ""
}
