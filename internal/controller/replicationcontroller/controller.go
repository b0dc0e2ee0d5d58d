// Package replicationcontroller keeps the number of pods that a ReplicationController asks for. See README.md for its rules; the work is done by package
// replicas, for which this package describes the ReplicationController.
package replicationcontroller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/replicas"
)

// Name is the controller's name in logs, metrics and events.
const Name = "replication-controller"

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	sets := deps.Informers.Core().V1().ReplicationControllers()
	return replicas.New(Name, &kind{client: deps.Client, informer: sets.Informer(), sets: sets.Lister()}, deps)
}

// kind is the ReplicationController as package replicas sees it.
type kind struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
	sets     corelisters.ReplicationControllerLister
}

func (*kind) GVK() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ReplicationController")
}
func (k *kind) Informer() cache.SharedIndexInformer { return k.informer }

func (k *kind) Get(namespace, name string) (*replicas.Set, error) {
	rc, err := k.sets.ReplicationControllers(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return &replicas.Set{
		Object: rc, Selector: selectorOf(rc),
		Replicas: replicasOf(rc), MinReadySeconds: rc.Spec.MinReadySeconds, Template: rc.Spec.Template,
		Status: statusOf(rc),
	}, nil
}

// selectorOf selects nothing when the selector is empty. Validation refuses that; one that slipped through must not take
// every pod of the namespace.
func selectorOf(rc *corev1.ReplicationController) labels.Selector {
	if len(rc.Spec.Selector) == 0 {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(rc.Spec.Selector)
}

func replicasOf(rc *corev1.ReplicationController) int32 {
	if rc.Spec.Replicas == nil {
		return 1
	}
	return *rc.Spec.Replicas
}

func (k *kind) Matching(pod *corev1.Pod) []metav1.Object {
	sets, err := k.sets.ReplicationControllers(pod.Namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	var matching []metav1.Object
	for _, rc := range sets {
		if selectorOf(rc).Matches(labels.Set(pod.Labels)) {
			matching = append(matching, rc)
		}
	}
	return matching
}

// Related is the set alone: nothing owns several ReplicationControllers for one purpose.
func (k *kind) Related(set *replicas.Set) []types.UID {
	return []types.UID{set.Object.GetUID()}
}

func (k *kind) Fresh(ctx context.Context, namespace, name string) (metav1.Object, error) {
	return k.client.CoreV1().ReplicationControllers(namespace).Get(ctx, name, metav1.GetOptions{})
}
