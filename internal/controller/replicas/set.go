// Package replicas keeps a number of equal pods: the common part of the ReplicaSet and the ReplicationController, which differ only in their
// types.
//
// A Kind translates between the API type and Set. Pod events and set events lead to keys; the sync of a key reads the set and its pods
// from the caches, adopts and releases pods, makes what is missing (slow start) or removes what is too many (ranked), and writes the status.
package replicas

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// Set is what the engine needs to know of a ReplicaSet or a ReplicationController.
type Set struct {
	Object          controller.Owner
	Selector        labels.Selector
	Replicas        int32
	MinReadySeconds int32
	Template        *corev1.PodTemplateSpec
	Status          Status
	// CountsTerminating is true for kinds whose status tells how many pods are on their way out.
	CountsTerminating bool
}

// Status is the status of a set.
type Status struct {
	Replicas, FullyLabeled, Ready, Available int32
	Terminating                              *int32
	ObservedGeneration                       int64
	Failure                                  *Failure
}

// Failure is the condition ReplicaFailure: pods could not be made or removed.
type Failure struct {
	Reason, Message string
	Since           time.Time
}

// Kind is one of the API types.
type Kind interface {
	// GVK is the type's group, version and kind.
	GVK() schema.GroupVersionKind
	// Informer is the informer of the sets.
	Informer() cache.SharedIndexInformer
	// Get reads a set from the cache, as NotFound error if it is not there.
	Get(namespace, name string) (*Set, error)
	// Matching lists the sets of the pod's namespace whose selector matches the pod.
	Matching(pod *corev1.Pod) []metav1.Object
	// Related lists the UIDs of the sets that serve the same purpose as this one, itself included.
	Related(set *Set) []types.UID
	// Fresh reads the set from the API server.
	Fresh(ctx context.Context, namespace, name string) (metav1.Object, error)
	// WriteStatus writes the status of the set.
	WriteStatus(ctx context.Context, set *Set, status Status) error
}
