package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// RevisionHashLabel is the label of a ControllerRevision that holds its hash.
const RevisionHashLabel = "controller.kubernetes.io/hash"

// Revisions keeps the history of a pod template as ControllerRevisions, for kubectl rollout history and undo, and to make pods of earlier
// versions. The data of a revision is a patch of the owner that brings its template back.
type Revisions struct {
	Client kubernetes.Interface
	Index  cache.Indexer
	Kind   schema.GroupVersionKind
}

// TemplatePatch is the data of a revision.
func TemplatePatch(template *corev1.PodTemplateSpec) ([]byte, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err != nil {
		return nil, err
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// RevisionTemplate reads the template back from a revision.
func RevisionTemplate(revision *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var patch struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(revision.Data.Raw, &patch); err != nil {
		return nil, fmt.Errorf("read ControllerRevision %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	return &patch.Spec.Template, nil
}

// List returns the revisions of an owner, the oldest first.
func (r Revisions) List(ctx context.Context, owner metav1.Object, selector labels.Selector, fresh func(context.Context) (metav1.Object, error)) ([]*appsv1.ControllerRevision, error) {
	claimer := Claimer[*appsv1.ControllerRevision]{
		Owner: owner, Kind: r.Kind, Selector: selector, Fresh: fresh,
		Patch: func(ctx context.Context, revision *appsv1.ControllerRevision, kind types.PatchType, patch []byte) error {
			_, err := r.Client.AppsV1().ControllerRevisions(revision.Namespace).Patch(ctx, revision.Name, kind, patch, metav1.PatchOptions{})
			return err
		},
	}
	candidates := append(Owned[*appsv1.ControllerRevision](r.Index, owner.GetUID()), Orphans[*appsv1.ControllerRevision](r.Index, owner.GetNamespace())...)
	revisions, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return nil, fmt.Errorf("claim the revisions of %s %s/%s: %w", r.Kind.Kind, owner.GetNamespace(), owner.GetName(), err)
	}
	slices.SortFunc(revisions, func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return revisions, nil
}

// Current finds the revision of the template among the owner's revisions, or makes it, and gives it the highest number. name makes the
// revision's hash and labels for a collision count; a name that another revision has raises the count.
func (r Revisions) Current(ctx context.Context, owner metav1.Object, template *corev1.PodTemplateSpec, revisions []*appsv1.ControllerRevision, collisions **int32,
	hash func(data []byte, collisions *int32) (hash string, labels map[string]string)) (*appsv1.ControllerRevision, error) {
	data, err := TemplatePatch(template)
	if err != nil {
		return nil, err
	}
	next := int64(1)
	if n := len(revisions); n > 0 {
		next = revisions[n-1].Revision + 1
	}
	for i, revision := range slices.Backward(revisions) {
		if !sameJSON(revision.Data.Raw, data) {
			continue
		}
		if i == len(revisions)-1 {
			return revision, nil
		}
		renumbered := revision.DeepCopy()
		renumbered.Revision = next
		return r.Client.AppsV1().ControllerRevisions(owner.GetNamespace()).Update(ctx, renumbered, metav1.UpdateOptions{})
	}
	sum, labels := hash(data, *collisions)
	revision := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: revisionName(owner.GetName(), sum), Namespace: owner.GetNamespace(), Labels: labels, Annotations: maps.Clone(owner.GetAnnotations()),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, r.Kind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: next,
	}
	made, err := r.Client.AppsV1().ControllerRevisions(owner.GetNamespace()).Create(ctx, revision, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	existing, getErr := r.Client.AppsV1().ControllerRevisions(owner.GetNamespace()).Get(ctx, revision.Name, metav1.GetOptions{})
	if getErr != nil {
		return nil, getErr
	}
	if metav1.IsControlledBy(existing, owner) && sameJSON(existing.Data.Raw, data) {
		return existing, nil
	}
	count := int32(1)
	if *collisions != nil {
		count = **collisions + 1
	}
	*collisions = &count
	return nil, fmt.Errorf("ControllerRevision %s/%s of another template has the same name: %w", revision.Namespace, revision.Name, err)
}

func revisionName(owner, hash string) string {
	const limit = 223
	return owner[:min(len(owner), limit)] + "-" + hash
}

// sameJSON compares texts of JSON by their meaning.
func sameJSON(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

// DataHash is the hash of a revision in the style of StatefulSets.
func DataHash(data []byte, collisions *int32) string {
	hasher := fnv.New32()
	hasher.Write(data)
	if collisions != nil {
		hasher.Write([]byte(strconv.FormatInt(int64(*collisions), 10)))
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// Trim deletes the oldest revisions beyond the limit. Revisions that live says are in use stay and do not count.
func (r Revisions) Trim(ctx context.Context, revisions []*appsv1.ControllerRevision, limit *int32, live func(*appsv1.ControllerRevision) bool) error {
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	var unused []*appsv1.ControllerRevision
	for _, revision := range revisions {
		if !live(revision) {
			unused = append(unused, revision)
		}
	}
	for _, revision := range unused[:max(0, len(unused)-int(*limit))] {
		err := r.Client.AppsV1().ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name, metav1.DeleteOptions{
			Preconditions: metav1.NewUIDPreconditions(string(revision.UID))})
		if IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
