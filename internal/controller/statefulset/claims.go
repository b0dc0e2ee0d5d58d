package statefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// retention is what becomes of the claims when the set is deleted and when it is scaled down.
func (r *round) retention() (whenDeleted, whenScaled bool) {
	policy := r.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil {
		return false, false
	}
	return policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType, policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
}

// claimOwners is what should own a claim, so that the garbage collector deletes it with the set, or with the pod that is scaled away. References of
// others stay.
func (r *round) claimOwners(refs []metav1.OwnerReference, ordinal int) []metav1.OwnerReference {
	whenDeleted, whenScaled := r.retention()
	beyond := ordinal < startOf(r.set) || ordinal > r.last()
	pod := r.pods[ordinal]
	out := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool {
		return ref.UID == r.set.UID || (ref.Kind == "Pod" && ref.Name == podName(r.set, ordinal))
	})
	switch {
	case beyond && whenScaled:
		if pod != nil {
			out = append(out, ownerOf("v1", "Pod", pod))
		}
	case whenDeleted:
		out = append(out, ownerOf(gvk.GroupVersion().String(), gvk.Kind, r.set))
	}
	return out
}

// syncClaimOwners writes the owners of the claims of all pods. It comes before any pod is removed.
func (r *round) syncClaimOwners(ctx context.Context) error {
	for ordinal := range r.pods {
		for i := range r.set.Spec.VolumeClaimTemplates {
			name := claimName(r.set, &r.set.Spec.VolumeClaimTemplates[i], ordinal)
			claim, err := r.c.claims.PersistentVolumeClaims(r.set.Namespace).Get(name)
			if err != nil {
				continue // made with the right owners, or already gone
			}
			owners := r.claimOwners(claim.OwnerReferences, ordinal)
			if sameOwners(owners, claim.OwnerReferences) {
				continue
			}
			updated := claim.DeepCopy()
			updated.OwnerReferences = owners
			_, err = r.c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, updated, metav1.UpdateOptions{})
			if controller.IgnoreNotFound(err) != nil {
				return fmt.Errorf("set the owners of claim %s/%s: %w", claim.Namespace, claim.Name, err)
			}
		}
	}
	return nil
}

func sameOwners(a, b []metav1.OwnerReference) bool {
	if len(a) != len(b) {
		return false
	}
	for _, ref := range a {
		if !slices.ContainsFunc(b, func(other metav1.OwnerReference) bool { return other.UID == ref.UID }) {
			return false
		}
	}
	return true
}
