package statefulset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bayplan/bayplan/internal/controller"
)

// createPod makes the claims and the pod of an ordinal. Ordinals below the partition keep the revision from before the update.
func (r *round) createPod(ctx context.Context, ordinal int) error {
	if err := r.createClaims(ctx, ordinal); err != nil {
		return err
	}
	template, revision := &r.set.Spec.Template, r.update.Name
	if r.keepsCurrent(ordinal) && r.current.Name != r.update.Name {
		old, err := controller.RevisionTemplate(r.current)
		if err != nil {
			return err
		}
		template, revision = old, r.current.Name
	}
	pod := newPod(r.cached, template, revision, ordinal)
	_, err := r.c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return err // the cache is behind, or a pod of that name is in the way: look again
	}
	r.tell(err, "create Pod "+pod.Name, "SuccessfulCreate", "FailedCreate")
	return err
}

func (r *round) keepsCurrent(ordinal int) bool {
	return r.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && ordinal < startOf(r.set)+partitionOf(r.set)
}

func (r *round) deletePod(ctx context.Context, pod *corev1.Pod) error {
	r.c.removals.Deleting(r.key, pod.UID)
	err := r.c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil {
		r.c.removals.DeleteFailed(r.key, pod.UID)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	r.tell(err, "delete Pod "+pod.Name, "SuccessfulDelete", "FailedDelete")
	return err
}

// tell makes an event of what was done.
func (r *round) tell(err error, what, good, bad string) {
	switch {
	case err == nil:
		r.c.recorder.Eventf(r.cached, corev1.EventTypeNormal, good, "%s in StatefulSet %s successful", what, r.set.Name)
	case !controller.IsNamespaceTerminating(err) && !apierrors.IsConflict(err) && !errors.Is(err, context.Canceled):
		r.c.recorder.Eventf(r.cached, corev1.EventTypeWarning, bad, "%s in StatefulSet %s failed error: %v", what, r.set.Name, err)
	}
}

// createClaims makes the claims of an ordinal that are not there.
func (r *round) createClaims(ctx context.Context, ordinal int) error {
	for i := range r.set.Spec.VolumeClaimTemplates {
		claim := newClaim(r.set, &r.set.Spec.VolumeClaimTemplates[i], ordinal)
		existing, err := r.c.claims.PersistentVolumeClaims(claim.Namespace).Get(claim.Name)
		if err == nil {
			if existing.DeletionTimestamp != nil {
				return fmt.Errorf("claim %s/%s is being deleted: pod %s waits until a new one can be made", claim.Namespace, claim.Name, podName(r.set, ordinal))
			}
			continue
		}
		claim.OwnerReferences = r.claimOwners(nil, ordinal)
		_, err = r.c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		r.tell(err, fmt.Sprintf("create Claim %s Pod %s", claim.Name, podName(r.set, ordinal)), "SuccessfulCreate", "FailedCreate")
		if err != nil {
			return err
		}
	}
	return nil
}

// roll replaces pods of earlier revisions, from the highest ordinal down to the partition.
func (r *round) roll(ctx context.Context) error {
	rolling := r.set.Spec.UpdateStrategy.RollingUpdate
	if rolling != nil && rolling.MaxUnavailable != nil {
		return r.rollWithin(ctx, r.maxUnavailable(rolling.MaxUnavailable))
	}
	for ordinal := r.last(); ordinal >= r.first(); ordinal-- {
		pod := r.pods[ordinal]
		if pod != nil && pod.DeletionTimestamp == nil && revisionOf(pod) != r.update.Name {
			return r.deletePod(ctx, pod)
		}
		if !r.healthy(pod) {
			return nil
		}
	}
	return nil
}

// rollWithin replaces pods while fewer than limit are unavailable. Pods that are not healthy anyway cost nothing.
func (r *round) rollWithin(ctx context.Context, limit int) error {
	unavailable := 0
	for ordinal := startOf(r.set); ordinal <= r.last(); ordinal++ {
		if !r.healthy(r.pods[ordinal]) {
			unavailable++
		}
	}
	for ordinal := r.last(); ordinal >= r.first(); ordinal-- {
		pod := r.pods[ordinal]
		if pod == nil || pod.DeletionTimestamp != nil || revisionOf(pod) == r.update.Name {
			continue
		}
		if r.healthy(pod) {
			if unavailable >= limit {
				return nil
			}
			unavailable++
		}
		if err := r.deletePod(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) last() int  { return startOf(r.set) + sizeOf(r.set) - 1 }
func (r *round) first() int { return startOf(r.set) + partitionOf(r.set) }

func (r *round) maxUnavailable(value *intstrutil.IntOrString) int {
	n, err := intstrutil.GetScaledValueFromIntOrPercent(value, sizeOf(r.set), true)
	if err != nil {
		return 1
	}
	return max(1, n)
}
