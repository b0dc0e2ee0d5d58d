// Package replicaset keeps the number of pods that a ReplicaSet asks for. See README.md for its rules; the work is done by package
// replicas, for which this package describes the ReplicaSet.
package replicaset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/replicas"
)

// Name is the controller's name in logs, metrics and events.
const Name = "replicaset-controller"

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	sets := deps.Informers.Apps().V1().ReplicaSets()
	if err := controller.IndexByOwner(sets.Informer()); err != nil {
		return nil, err
	}
	return replicas.New(Name, &kind{client: deps.Client, informer: sets.Informer(), sets: sets.Lister()}, deps)
}

// kind is the ReplicaSet as package replicas sees it.
type kind struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
	sets     appslisters.ReplicaSetLister
}

func (*kind) GVK() schema.GroupVersionKind          { return appsv1.SchemeGroupVersion.WithKind("ReplicaSet") }
func (k *kind) Informer() cache.SharedIndexInformer { return k.informer }

func (k *kind) Get(namespace, name string) (*replicas.Set, error) {
	rs, err := k.sets.ReplicaSets(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
	if err != nil || selector.Empty() {
		// Validation refuses such a selector. One that slipped through must not take every pod of the namespace.
		selector = labels.Nothing()
	}
	return &replicas.Set{
		Object: rs, Selector: selector,
		Replicas: replicasOf(rs), MinReadySeconds: rs.Spec.MinReadySeconds, Template: &rs.Spec.Template,
		Status: statusOf(rs), CountsTerminating: true,
	}, nil
}

func replicasOf(rs *appsv1.ReplicaSet) int32 {
	if rs.Spec.Replicas == nil {
		return 1
	}
	return *rs.Spec.Replicas
}

func (k *kind) Matching(pod *corev1.Pod) []metav1.Object {
	sets, err := k.sets.ReplicaSets(pod.Namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	var matching []metav1.Object
	for _, rs := range sets {
		selector, err := metav1.LabelSelectorAsSelector(rs.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, rs)
		}
	}
	return matching
}

// Related are the ReplicaSets of the same Deployment.
func (k *kind) Related(set *replicas.Set) []types.UID {
	ref := metav1.GetControllerOfNoCopy(set.Object)
	if ref == nil {
		return []types.UID{set.Object.GetUID()}
	}
	var uids []types.UID
	for _, rs := range controller.Owned[*appsv1.ReplicaSet](k.informer.GetIndexer(), ref.UID) {
		uids = append(uids, rs.UID)
	}
	return uids
}

func (k *kind) Fresh(ctx context.Context, namespace, name string) (metav1.Object, error) {
	return k.client.AppsV1().ReplicaSets(namespace).Get(ctx, name, metav1.GetOptions{})
}
