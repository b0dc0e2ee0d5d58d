package source

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// further are the kinds that a cluster may lack: what belongs together and is spread by default, and what may be
// disrupted.
func (s *Source) further() []kind {
	core, apps, policy := s.factory.Core().V1(), s.factory.Apps().V1(), s.factory.Policy().V1()
	return []kind{
		{v1.SchemeGroupVersion, "services", core.Services().Informer, s.services()},
		{v1.SchemeGroupVersion, "replicationcontrollers", core.ReplicationControllers().Informer,
			owners(s, ledger.ReplicationController, func(o *v1.ReplicationController) labels.Selector {
				return labels.SelectorFromSet(o.Spec.Selector)
			})},
		{appsv1.SchemeGroupVersion, "replicasets", apps.ReplicaSets().Informer,
			owners(s, ledger.ReplicaSet, func(o *appsv1.ReplicaSet) labels.Selector { return parse(o.Spec.Selector) })},
		{appsv1.SchemeGroupVersion, "statefulsets", apps.StatefulSets().Informer,
			owners(s, ledger.StatefulSet, func(o *appsv1.StatefulSet) labels.Selector { return parse(o.Spec.Selector) })},
		{policyv1.SchemeGroupVersion, "poddisruptionbudgets", policy.PodDisruptionBudgets().Informer, s.budgets()},
	}
}

// parse returns nothing's selector for one that cannot be parsed.
func parse(selector *metav1.LabelSelector) labels.Selector {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return labels.Nothing()
	}
	return parsed
}

func (s *Source) services() cache.ResourceEventHandler {
	set := func(namespace, name string, selector labels.Set) {
		s.mailbox.Put(func(c *core.Core, _ time.Time) { c.Ledger.SetService(namespace, name, selector) })
	}
	return handler(
		func(o *v1.Service) { set(o.Namespace, o.Name, o.Spec.Selector) },
		func(_, o *v1.Service) { set(o.Namespace, o.Name, o.Spec.Selector) },
		func(o *v1.Service) { set(o.Namespace, o.Name, nil) },
	)
}

// owners watches controllers of one kind for what they select.
func owners[T any, P interface {
	*T
	metav1.Object
}](s *Source, kind string, selector func(P) labels.Selector) cache.ResourceEventHandler {
	set := func(o P, selects labels.Selector) {
		s.mailbox.Put(func(c *core.Core, _ time.Time) { c.Ledger.SetOwner(kind, o.GetNamespace(), o.GetName(), selects) })
	}
	return handler(
		func(o *T) { set(o, selector(o)) },
		func(_, o *T) { set(o, selector(o)) },
		func(o *T) { set(o, nil) },
	)
}

func (s *Source) budgets() cache.ResourceEventHandler {
	set := func(o *policyv1.PodDisruptionBudget) {
		budget := &ledger.Budget{
			Namespace: o.Namespace, Name: o.Name, Selector: parse(o.Spec.Selector), Allowed: o.Status.DisruptionsAllowed,
			Disrupted: map[string]bool{},
		}
		for pod := range o.Status.DisruptedPods {
			budget.Disrupted[pod] = true
		}
		s.mailbox.Put(func(c *core.Core, _ time.Time) { c.Ledger.SetBudget(budget) })
	}
	return handler(
		set,
		func(_, o *policyv1.PodDisruptionBudget) { set(o) },
		func(o *policyv1.PodDisruptionBudget) {
			s.mailbox.Put(func(c *core.Core, _ time.Time) { c.Ledger.DeleteBudget(o.Namespace, o.Name) })
		},
	)
}
