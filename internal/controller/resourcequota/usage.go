package resourcequota

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/quota"
)

// adder adds what an object uses to the resources that the quota limits, and drops what it does not.
type adder func(used corev1.ResourceList)

func adderTo(total corev1.ResourceList) adder {
	return func(used corev1.ResourceList) {
		for name, amount := range used {
			if sum, limited := total[name]; limited {
				sum.Add(amount)
				total[name] = sum
			}
		}
	}
}

// finished tells whether the pod no longer uses anything.
func finished(pod *corev1.Pod) bool { return controller.IsPodFinished(pod) }

// inScopes tells whether the quota means an object, given what tells whether the object is in one scope.
func inScopes[T any](q *corev1.ResourceQuota, obj T, fits func(corev1.ScopedResourceSelectorRequirement, T) bool) bool {
	for _, requirement := range quota.Requirements(q) {
		if !fits(requirement, obj) {
			return false
		}
	}
	return true
}

// countPods counts pods and what they ask for.
func (c *Controller) countPods(q *corev1.ResourceQuota, add adder) error {
	pods, err := c.pods.Pods(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if inScopes(q, pod, quota.PodFits) {
			add(quota.PodUsage(pod, c.clock.Now()))
		}
	}
	return nil
}

// countServices: a quota with scopes means no Services.
func (c *Controller) countServices(q *corev1.ResourceQuota, add adder) error {
	if len(quota.Requirements(q)) > 0 {
		return nil
	}
	services, err := c.services.Services(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, service := range services {
		add(quota.ServiceUsage(service))
	}
	return nil
}

func (c *Controller) countClaims(q *corev1.ResourceQuota, add adder) error {
	claims, err := c.claims.PersistentVolumeClaims(q.Namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if inScopes(q, claim, quota.ClaimFits) {
			add(quota.ClaimUsage(claim))
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
