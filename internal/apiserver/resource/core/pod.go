package core

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/podspec"
	"github.com/bayplan/bayplan/internal/qos"
)

func pod(options Options) *resource.Kind[*corev1.Pod] {
	return &resource.Kind[*corev1.Pod]{
		Resource:   "pods",
		ShortNames: []string{"po"},
		Categories: []string{"all"},
		HasStatus:  true,
		Generation: true,
		New:        func() *corev1.Pod { return &corev1.Pod{} },
		NewList:    func() runtime.Object { return &corev1.PodList{} },
		Default:    func(p *corev1.Pod) { podspec.Default(&p.Spec) },
		PrepareCreate: func(_ context.Context, p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qos.Class(&p.Spec)}
			if len(p.Spec.SchedulingGates) > 0 {
				p.Status.Conditions = []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
					Message: "Scheduling is blocked due to non-empty scheduling gates",
				}}
			}
		},
		PrepareStatus: func(_ context.Context, p, old *corev1.Pod) {
			if p.Status.QOSClass == "" {
				p.Status.QOSClass = old.Status.QOSClass
			}
		},
		Validate:       func(p *corev1.Pod) field.ErrorList { return podspec.Validate(&p.Spec, field.NewPath("spec")) },
		ValidateUpdate: validatePodUpdate,
		GracefulDelete: gracefulPodDelete,
		Index:          "spec.nodeName",
		Fields: map[string]func(*corev1.Pod) string{
			"spec.nodeName":            func(p *corev1.Pod) string { return p.Spec.NodeName },
			"spec.restartPolicy":       func(p *corev1.Pod) string { return string(p.Spec.RestartPolicy) },
			"spec.schedulerName":       func(p *corev1.Pod) string { return p.Spec.SchedulerName },
			"spec.serviceAccountName":  func(p *corev1.Pod) string { return p.Spec.ServiceAccountName },
			"spec.hostNetwork":         func(p *corev1.Pod) string { return boolean(p.Spec.HostNetwork) },
			"status.phase":             func(p *corev1.Pod) string { return string(p.Status.Phase) },
			"status.podIP":             podAddress,
			"status.podIPs":            podAddress,
			"status.nominatedNodeName": func(p *corev1.Pod) string { return p.Status.NominatedNodeName },
		},
		Columns: podColumns(),
		Subs:    map[string]resource.Sub[*corev1.Pod]{"ephemeralcontainers": ephemeralContainers(), "resize": resize()},
		Extra: func(env resource.Environment, store *genericregistry.Store) (map[string]rest.Storage, error) {
			budgets, err := options.Budgets.Store(env, policyv1.SchemeGroupVersion)
			extra := relay.PodStorage(store, options.Nodes)
			extra["binding"] = &bindingStorage{store}
			extra["eviction"] = &evictionStorage{pods: store, budgets: budgets}
			return extra, err
		},
	}
}

// gracefulPodDelete gives a pod its time to end when it may be running on a node; a pod that no node has, or that has ended, goes at once.
func gracefulPodDelete(p *corev1.Pod, options *metav1.DeleteOptions) bool {
	period := int64(0)
	switch {
	case p.Spec.NodeName == "", p.Status.Phase == corev1.PodSucceeded, p.Status.Phase == corev1.PodFailed:
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case p.Spec.TerminationGracePeriodSeconds != nil:
		period = *p.Spec.TerminationGracePeriodSeconds
	}
	if period < 0 {
		// A negative period asks for the shortest that is graceful.
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}

func podAddress(p *corev1.Pod) string { return p.Status.PodIP }

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
