package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storeerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

const (
	// maxDisruptedPods bounds how many evictions the budget's controller may not have seen yet.
	maxDisruptedPods = 2000
	// budgetRetrySeconds is when to try again while the budget's controller is behind.
	budgetRetrySeconds = 10

	evictionRefused = "Cannot evict pod as it would violate the pod's disruption budget."
)

// evictionStorage is pods/eviction: it deletes a pod when its disruption budget allows that.
type evictionStorage struct{ pods, budgets *genericregistry.Store }

var evictionKind = policyv1.SchemeGroupVersion.WithKind("Eviction")

func (s *evictionStorage) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy leaves the storage to the resources themselves, which share it.
func (s *evictionStorage) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: the sub-resource is of another group than its resource.
func (s *evictionStorage) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return evictionKind
}

// Create implements rest.NamedCreater.
func (s *evictionStorage) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("pods/eviction takes an Eviction, not a %T", obj))
	}
	if eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	deletion := &metav1.DeleteOptions{}
	if eviction.DeleteOptions != nil {
		deletion = eviction.DeleteOptions.DeepCopy()
	}
	if len(options.DryRun) > 0 {
		deletion.DryRun = options.DryRun
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopy()); err != nil {
			return nil, err
		}
	}
	// The pod may change between the check and the deletion, which is then tried again unless the client named the version that it means.
	retriable := func(err error) bool {
		return apierrors.IsConflict(err) && (deletion.Preconditions == nil || deletion.Preconditions.ResourceVersion == nil)
	}
	err := retry.OnError(retry.DefaultBackoff, retriable, func() error { return s.evict(ctx, name, deletion.DeepCopy()) })
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

func (s *evictionStorage) evict(ctx context.Context, name string, deletion *metav1.DeleteOptions) error {
	obj, err := s.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod := obj.(*corev1.Pod)
	if needsBudget(pod) {
		budget, err := s.budgetOf(ctx, pod)
		if err != nil {
			return err
		}
		if budget != nil {
			if err := s.ask(ctx, budget, pod, deletion); err != nil {
				return err
			}
		}
	}
	if err := s.markDisrupted(ctx, pod, deletion); err != nil {
		return err
	}
	_, _, err = s.pods.Delete(ctx, name, rest.ValidateAllObjectFunc, deletion)
	return err
}

// needsBudget: a pod that does no work, or is going already, disrupts nothing.
func needsBudget(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return false
	}
	return pod.DeletionTimestamp == nil
}

func (s *evictionStorage) budgetOf(ctx context.Context, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	if len(pod.Labels) == 0 {
		return nil, nil
	}
	list, err := s.budgets.List(ctx, nil)
	if err != nil {
		return nil, err
	}
	var found *policyv1.PodDisruptionBudget
	for i := range list.(*policyv1.PodDisruptionBudgetList).Items {
		b := &list.(*policyv1.PodDisruptionBudgetList).Items[i]
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
		}
		found = b
	}
	return found, nil
}

// ask takes one disruption from the budget, unless the pod is one that may go without.
func (s *evictionStorage) ask(ctx context.Context, budget *policyv1.PodDisruptionBudget, pod *corev1.Pod, deletion *metav1.DeleteOptions) error {
	if !isReady(pod) {
		enough := budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy && budget.Status.DesiredHealthy > 0
		if enough || ptr.Deref(budget.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow {
			// It must still be unready when it goes.
			if deletion.Preconditions == nil {
				deletion.Preconditions = &metav1.Preconditions{}
			}
			if deletion.Preconditions.ResourceVersion == nil {
				deletion.Preconditions.ResourceVersion = &pod.ResourceVersion
			}
			return nil
		}
	}
	key, err := s.budgets.KeyFunc(ctx, budget.Name)
	if err != nil {
		return err
	}
	take := func(obj runtime.Object) (runtime.Object, error) {
		b := obj.(*policyv1.PodDisruptionBudget)
		return b, takeDisruption(b, pod.Name)
	}
	err = s.budgets.Storage.GuaranteedUpdate(ctx, key, &policyv1.PodDisruptionBudget{}, true, nil, storage.SimpleUpdate(take), dryrun.IsDryRun(deletion.DryRun), nil)
	if storage.IsNotFound(err) {
		// The budget has gone, and its limit with it.
		return nil
	}
	return storeerr.InterpretUpdateError(err, policyv1.Resource("poddisruptionbudgets"), budget.Name)
}

func takeDisruption(b *policyv1.PodDisruptionBudget, pod string) error {
	forbid := func(text string) error {
		return apierrors.NewForbidden(policyv1.Resource("poddisruptionbudget"), b.Name, fmt.Errorf("%s", text))
	}
	switch {
	case b.UID == "":
		return nil
	case b.Status.ObservedGeneration < b.Generation:
		return refused(budgetRetrySeconds, fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	case b.Status.DisruptionsAllowed < 0:
		return forbid("pdb disruptions allowed is negative")
	case len(b.Status.DisruptedPods) > maxDisruptedPods:
		return forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
	case b.Status.DisruptionsAllowed == 0:
		return refused(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy))
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Status.ObservedGeneration,
		})
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	// The controller takes the pod out when it has seen the deletion, or after a while when there was none.
	b.Status.DisruptedPods[pod] = metav1.Now()
	return nil
}

func refused(retrySeconds int, cause string) error {
	err := apierrors.NewTooManyRequests(evictionRefused, retrySeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}

// markDisrupted tells on the pod why it goes.
func (s *evictionStorage) markDisrupted(ctx context.Context, pod *corev1.Pod, deletion *metav1.DeleteOptions) error {
	key, err := s.pods.KeyFunc(ctx, pod.Name)
	if err != nil {
		return err
	}
	preconditions := &storage.Preconditions{UID: &pod.UID}
	if p := deletion.Preconditions; p != nil {
		preconditions.ResourceVersion = p.ResourceVersion
		if p.UID != nil {
			preconditions.UID = p.UID
		}
	}
	out := &corev1.Pod{}
	mark := func(obj runtime.Object) (runtime.Object, error) {
		p := obj.(*corev1.Pod)
		setPodCondition(p, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting", ObservedGeneration: p.Generation,
		})
		return p, nil
	}
	err = s.pods.Storage.GuaranteedUpdate(ctx, key, out, false, preconditions, storage.SimpleUpdate(mark), dryrun.IsDryRun(deletion.DryRun), nil)
	if err != nil {
		return storeerr.InterpretUpdateError(err, corev1.Resource("pods"), pod.Name)
	}
	if p := deletion.Preconditions; p != nil && p.ResourceVersion != nil && !dryrun.IsDryRun(deletion.DryRun) {
		p.ResourceVersion = &out.ResourceVersion
	}
	return nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// setPodCondition sets a condition; its time moves only when its status does.
func setPodCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	condition.LastTransitionTime = metav1.Now()
	for i := range pod.Status.Conditions {
		if old := &pod.Status.Conditions[i]; old.Type == condition.Type {
			if old.Status == condition.Status {
				condition.LastTransitionTime = old.LastTransitionTime
			}
			*old = condition
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}
