package deployment

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// sameTemplate compares pod templates without the label that the controller itself adds.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	return equality.Semantic.DeepEqual(&x, &y)
}

func withoutHash(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, appsv1.DefaultDeploymentUniqueLabelKey)
	return out
}

// findNewSet is the oldest ReplicaSet that has the Deployment's template. More than one can only come from outside.
func findNewSet(d *appsv1.Deployment, oldestFirst []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	for _, rs := range oldestFirst {
		if sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			return rs
		}
	}
	return nil
}

// syncRevision makes sure that the new ReplicaSet carries the newest revision number, and makes the ReplicaSet if create is set.
func (r *rollout) syncRevision(ctx context.Context, create bool) error {
	revision := int64(0)
	for _, rs := range r.old {
		revision = max(revision, revisionOf(rs))
	}
	revision++
	if r.newSet != nil {
		return r.adoptRevision(ctx, revision)
	}
	if create {
		return r.createSet(ctx, revision)
	}
	return nil
}

func (r *rollout) adoptRevision(ctx context.Context, revision int64) error {
	rs := r.newSet.DeepCopy()
	changed := setRevisionAnnotations(r.cached, rs, revision)
	if rs.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
		changed = true
	}
	if changed {
		written, err := r.c.client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, rs, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update revision of ReplicaSet %s/%s: %w", rs.Namespace, rs.Name, err)
		}
		r.c.fresh.Wrote(written)
		r.newSet = written
	}
	r.setRevision(r.newSet.Annotations[RevisionAnnotation])
	if r.hasDeadline() && r.condition(appsv1.DeploymentProgressing) == nil {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", rs.Name))
	}
	return nil
}

func (r *rollout) setRevision(revision string) {
	if r.d.Annotations[RevisionAnnotation] == revision {
		return
	}
	if r.d.Annotations == nil {
		r.d.Annotations = map[string]string{}
	}
	r.d.Annotations[RevisionAnnotation] = revision
}

// desiredSet is the ReplicaSet of the Deployment's template.
func (r *rollout) desiredSet(revision int64) *appsv1.ReplicaSet {
	hash := controller.TemplateHash(&r.d.Spec.Template, r.d.Status.CollisionCount)
	template := *r.d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, hash)
	selector := r.d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            setName(r.d.Name, hash),
			Namespace:       r.d.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(r.d, gvk)},
			Labels:          maps.Clone(template.Labels),
		},
		Spec: appsv1.ReplicaSetSpec{
			MinReadySeconds: r.d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}
	size := r.replicas
	if r.d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		size = r.room(0)
	}
	rs.Spec.Replicas = &size
	setRevisionAnnotations(r.cached, rs, revision)
	setSizeAnnotations(rs, r.replicas, r.replicas+r.maxSurge)
	return rs
}

func withHash(labels map[string]string, hash string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return out
}

// setName is the Deployment's name and the hash, in at most 253 characters.
func setName(deployment, hash string) string {
	const limit = 253
	if room := limit - len(hash) - 1; len(deployment) > room {
		deployment = deployment[:room]
	}
	return deployment + "-" + hash
}

func (r *rollout) createSet(ctx context.Context, revision int64) error {
	desired := r.desiredSet(revision)
	key := r.d.Namespace + "/" + r.d.Name
	r.c.creations.Creating(key)
	rs, err := r.c.client.AppsV1().ReplicaSets(desired.Namespace).Create(ctx, desired, metav1.CreateOptions{})
	if err != nil {
		r.c.creations.CreateFailed(key)
		return r.createFailed(ctx, desired, err)
	}
	r.c.creations.Created(key, rs.UID)
	r.c.fresh.Wrote(rs)
	r.newSet = rs
	if size := wanted(rs); size > 0 {
		r.c.recorder.Eventf(r.cached, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", rs.Name, size)
	}
	r.setRevision(rs.Annotations[RevisionAnnotation])
	if r.hasDeadline() {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", rs.Name))
	}
	return nil
}

func (r *rollout) createFailed(ctx context.Context, desired *appsv1.ReplicaSet, err error) error {
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.resolveExisting(ctx, desired, err)
	case controller.IsNamespaceTerminating(err):
		return err
	}
	message := fmt.Sprintf("Failed to create new replica set %q: %v", desired.Name, err)
	if r.hasDeadline() {
		r.setCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError", message)
	}
	r.c.recorder.Event(r.cached, corev1.EventTypeWarning, "ReplicaSetCreateError", message)
	return fmt.Errorf("create ReplicaSet %s/%s: %w", desired.Namespace, desired.Name, err)
}

// resolveExisting looks at a ReplicaSet that already has the name. It is ours if only the cache did not show it yet; otherwise two templates have
// the same hash, and the collision count gives the next attempt another one.
func (r *rollout) resolveExisting(ctx context.Context, desired *appsv1.ReplicaSet, exists error) error {
	rs, err := r.c.client.AppsV1().ReplicaSets(desired.Namespace).Get(ctx, desired.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if ref := metav1.GetControllerOfNoCopy(rs); ref != nil && ref.UID == r.d.UID && sameTemplate(&rs.Spec.Template, &r.d.Spec.Template) {
		r.newSet = rs
		r.setRevision(rs.Annotations[RevisionAnnotation])
		return nil
	}
	r.d.Status.CollisionCount = ptr.To(ptr.Deref(r.d.Status.CollisionCount, 0) + 1)
	return fmt.Errorf("ReplicaSet %s/%s of another template has the same name: %w", desired.Namespace, desired.Name, exists)
}
