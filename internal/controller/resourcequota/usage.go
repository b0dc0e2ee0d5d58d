package resourcequota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// adder adds to the resources that the quota limits, and drops what it does not.
type adder func(name corev1.ResourceName, amount resource.Quantity)

func adderTo(total corev1.ResourceList) adder {
	return func(name corev1.ResourceName, amount resource.Quantity) {
		if sum, limited := total[name]; limited {
			sum.Add(amount)
			total[name] = sum
		}
	}
}

func one() resource.Quantity { return *resource.NewQuantity(1, resource.DecimalSI) }

// finished tells whether the pod no longer uses anything.
func finished(pod *corev1.Pod) bool { return controller.IsPodFinished(pod) }

// countPods counts pods and what they ask for. Finished ones only count as objects.
func (c *Controller) countPods(q *corev1.ResourceQuota, add adder) error {
	pods, err := c.pods.Pods(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if !podInScope(q, pod) {
			continue
		}
		add("count/pods", one())
		if finished(pod) {
			continue
		}
		add(corev1.ResourcePods, one())
		for name, amount := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			add(corev1.ResourceName("requests."+string(name)), amount)
			switch name {
			case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
				add(name, amount)
			default:
				if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
					add(name, amount)
				}
			}
		}
		for name, amount := range resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{}) {
			add(corev1.ResourceName("limits."+string(name)), amount)
		}
	}
	return nil
}

func (c *Controller) countServices(q *corev1.ResourceQuota, add adder) error {
	if scoped(q) {
		return nil
	}
	services, err := c.services.Services(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, s := range services {
		add(corev1.ResourceServices, one())
		add("count/services", one())
		ports := int64(len(s.Spec.Ports))
		switch s.Spec.Type {
		case corev1.ServiceTypeLoadBalancer:
			add(corev1.ResourceServicesLoadBalancers, one())
			if !ptr.Deref(s.Spec.AllocateLoadBalancerNodePorts, true) {
				ports = 0
				for _, p := range s.Spec.Ports {
					if p.NodePort != 0 {
						ports++
					}
				}
			}
			add(corev1.ResourceServicesNodePorts, *resource.NewQuantity(ports, resource.DecimalSI))
		case corev1.ServiceTypeNodePort:
			add(corev1.ResourceServicesNodePorts, *resource.NewQuantity(ports, resource.DecimalSI))
		}
	}
	return nil
}

// classSuffix ends the names of resources that limit one storage class.
const classSuffix = ".storageclass.storage.k8s.io/"

func (c *Controller) countClaims(q *corev1.ResourceQuota, add adder) error {
	if scoped(q) {
		return nil
	}
	claims, err := c.claims.PersistentVolumeClaims(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, claim := range claims {
		class := ptr.Deref(claim.Spec.StorageClassName, claim.Annotations[corev1.BetaStorageClassAnnotation])
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if allocated := claim.Status.AllocatedResources[corev1.ResourceStorage]; allocated.Cmp(size) > 0 {
			size = allocated // a claim that shrinks still has what it had
		}
		add(corev1.ResourcePersistentVolumeClaims, one())
		add("count/persistentvolumeclaims", one())
		add(corev1.ResourceRequestsStorage, size)
		if class != "" {
			add(corev1.ResourceName(class+classSuffix+"persistentvolumeclaims"), one())
			add(corev1.ResourceName(class+classSuffix+"requests.storage"), size)
		}
	}
	return nil
}

// plain are the resources of the core group that quotas count by their name alone.
var plain = map[corev1.ResourceName]bool{
	corev1.ResourceConfigMaps: true, corev1.ResourceSecrets: true, corev1.ResourceReplicationControllers: true, corev1.ResourceQuotas: true,
}

// counted is the resource whose objects a name counts, if it is one that is only counted.
func counted(name corev1.ResourceName) (schema.GroupResource, bool) {
	if plain[name] {
		return schema.GroupResource{Resource: string(name)}, true
	}
	text, found := strings.CutPrefix(string(name), "count/")
	if !found || text == "pods" || text == "services" || text == "persistentvolumeclaims" {
		return schema.GroupResource{}, false
	}
	return schema.ParseGroupResource(text), true
}
