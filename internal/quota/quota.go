// Package quota holds the rules of ResourceQuotas that admission and the quota controller have to agree on: what an object uses, and which objects a quota's scopes mean.
//
// Admission adds what a new object uses to a quota's status; the controller counts all objects anew. What only counts objects by their number ("count/secrets") needs no rule.
package quota

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
)

const (
	countPods     corev1.ResourceName = "count/pods"
	countServices corev1.ResourceName = "count/services"
	countClaims   corev1.ResourceName = "count/persistentvolumeclaims"

	// StorageClassSuffix follows the name of a StorageClass in names of resources that limit claims of that class.
	StorageClassSuffix = ".storageclass.storage.k8s.io/"
)

func number(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// PodUsage is what a pod uses. One that ended is only an object; so is one that should have been gone by now, whose node may be lost.
func PodUsage(pod *corev1.Pod, now time.Time) corev1.ResourceList {
	used := corev1.ResourceList{countPods: number(1)}
	if ended(pod, now) {
		return used
	}
	used[corev1.ResourcePods] = number(1)
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	addCompute(used, resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options))
	return used
}

func ended(pod *corev1.Pod, now time.Time) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return true
	}
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return false
	}
	return now.After(pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second))
}

// addCompute adds requests and limits under the names that quotas have for them.
func addCompute(used, requests, limits corev1.ResourceList) {
	for name, amount := range requests {
		if plain(name) || hugePages(name) {
			used[name] = amount
		}
		if plain(name) || hugePages(name) || extended(name) {
			used[corev1.DefaultResourceRequestsPrefix+name] = amount
		}
	}
	for name, amount := range limits {
		if plain(name) {
			used["limits."+name] = amount
		}
	}
}

func plain(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
}

func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// extended: a resource of somebody's domain that is not Kubernetes', or the one that stands for a class of devices.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), resourcev1.ResourceDeviceClassPrefix)
}

// Computes are the names, of those of a quota, that a container has to give an amount for in a namespace with that quota.
func Computes(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory:
		return true
	}
	return false
}

// ContainerUsage is what a container says of compute resources, under the names of quotas.
func ContainerUsage(c *corev1.Container) corev1.ResourceList {
	used := corev1.ResourceList{}
	addCompute(used, c.Resources.Requests, c.Resources.Limits)
	return used
}

// PodResource tells whether a quota's resource is one that pods use.
func PodResource(name corev1.ResourceName) bool {
	request, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	limit, isLimit := strings.CutPrefix(string(name), "limits.")
	switch {
	case name == countPods, name == corev1.ResourcePods, plain(name), hugePages(name):
		return true
	case isRequest:
		bare := corev1.ResourceName(request)
		return plain(bare) || hugePages(bare) || extended(bare)
	case isLimit:
		return plain(corev1.ResourceName(limit))
	}
	return false
}

// ServiceUsage is what a Service uses. Ports of nodes count as soon as the Service is of a type that gets them.
func ServiceUsage(s *corev1.Service) corev1.ResourceList {
	ports, balancers := 0, 0
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		balancers = 1
		for _, port := range s.Spec.Ports {
			if port.NodePort != 0 || ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
				ports++
			}
		}
	}
	return corev1.ResourceList{
		countServices: number(1), corev1.ResourceServices: number(1),
		corev1.ResourceServicesLoadBalancers: number(int64(balancers)), corev1.ResourceServicesNodePorts: number(int64(ports)),
	}
}

// ServiceResource tells whether a quota's resource is one that Services use.
func ServiceResource(name corev1.ResourceName) bool {
	_, ok := ServiceUsage(&corev1.Service{})[name]
	return ok
}

// ClaimUsage is what a PersistentVolumeClaim uses, in total and of its class. A claim that shrinks still has what it had.
func ClaimUsage(claim *corev1.PersistentVolumeClaim) corev1.ResourceList {
	used := corev1.ResourceList{countClaims: number(1), corev1.ResourcePersistentVolumeClaims: number(1)}
	if size, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		if allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]; allocated.Cmp(size) > 0 {
			size = allocated
		}
		size = size.DeepCopy()
		size.RoundUp(0)
		used[corev1.ResourceRequestsStorage] = size
	}
	class, named := claim.Annotations[corev1.BetaStorageClassAnnotation]
	if !named {
		class = ptr.Deref(claim.Spec.StorageClassName, "")
	}
	if class != "" {
		for _, name := range []corev1.ResourceName{corev1.ResourcePersistentVolumeClaims, corev1.ResourceRequestsStorage} {
			if amount, ok := used[name]; ok {
				used[corev1.ResourceName(class+StorageClassSuffix)+name] = amount
			}
		}
	}
	return used
}

// ClaimResource tells whether a quota's resource is one that PersistentVolumeClaims use.
func ClaimResource(name corev1.ResourceName) bool {
	if _, of, ok := strings.Cut(string(name), StorageClassSuffix); ok {
		name = corev1.ResourceName(of)
	}
	return name == countClaims || name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
}
