package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
)

// ownerIndex finds objects by the UID of their controller, and those without one by their namespace. Without it each sync of one set
// would look at all pods of the namespace.
const ownerIndex = "bayplan.controllerUID"

func ownerIndexKey(uid types.UID) string     { return "uid/" + string(uid) }
func orphanIndexKey(namespace string) string { return "orphan/" + namespace }

// IndexByOwner makes the informer's objects findable with Owned and Orphans. Every controller that needs it calls it; the
// index is added once.
func IndexByOwner(informer cache.SharedIndexInformer) error {
	if _, found := informer.GetIndexer().GetIndexers()[ownerIndex]; found {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{ownerIndex: func(obj any) ([]string, error) {
		object, ok := obj.(metav1.Object)
		if !ok {
			return nil, nil
		}
		if ref := metav1.GetControllerOfNoCopy(object); ref != nil {
			return []string{ownerIndexKey(ref.UID)}, nil
		}
		return []string{orphanIndexKey(object.GetNamespace())}, nil
	}})
	if err != nil {
		return fmt.Errorf("index objects by owner: %w", err)
	}
	return nil
}

// Owned returns the cached objects whose controller has the UID.
func Owned[T any](indexer cache.Indexer, uid types.UID) []T {
	return byIndex[T](indexer, ownerIndexKey(uid))
}

// Orphans returns the cached objects of a namespace that have no controller.
func Orphans[T any](indexer cache.Indexer, namespace string) []T {
	return byIndex[T](indexer, orphanIndexKey(namespace))
}

func byIndex[T any](indexer cache.Indexer, key string) []T {
	objs, err := indexer.ByIndex(ownerIndex, key)
	if err != nil {
		// Only possible when IndexByOwner was not called: a mistake in the program, not in its input.
		panic(err)
	}
	out := make([]T, 0, len(objs))
	for _, obj := range objs {
		if t, ok := obj.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// nodeIndex finds pods by the node that they are assigned to.
const nodeIndex = "bayplan.nodeName"

// IndexByNode makes the pods of an informer findable with PodsOnNode.
func IndexByNode(informer cache.SharedIndexInformer) error {
	if _, found := informer.GetIndexer().GetIndexers()[nodeIndex]; found {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{nodeIndex: func(obj any) ([]string, error) {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return fmt.Errorf("index pods by node: %w", err)
	}
	return nil
}

// PodsOnNode returns the cached pods that are assigned to a node.
func PodsOnNode(indexer cache.Indexer, node string) []*corev1.Pod {
	objs, err := indexer.ByIndex(nodeIndex, node)
	if err != nil {
		panic(err)
	}
	pods := make([]*corev1.Pod, 0, len(objs))
	for _, obj := range objs {
		pods = append(pods, obj.(*corev1.Pod))
	}
	return pods
}

// claimIndex finds pods by the PersistentVolumeClaims that they use.
const claimIndex = "bayplan.claimName"

// IndexByClaim makes the pods of an informer findable with PodsOfClaim.
func IndexByClaim(informer cache.SharedIndexInformer) error {
	if _, found := informer.GetIndexer().GetIndexers()[claimIndex]; found {
		return nil
	}
	err := informer.AddIndexers(cache.Indexers{claimIndex: func(obj any) ([]string, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return nil, nil
		}
		names := ClaimNames(pod)
		for i, name := range names {
			names[i] = pod.Namespace + "/" + name
		}
		return names, nil
	}})
	if err != nil {
		return fmt.Errorf("index pods by claim: %w", err)
	}
	return nil
}

// PodsOfClaim returns the cached pods that have a volume of the claim.
func PodsOfClaim(indexer cache.Indexer, namespace, claim string) []*corev1.Pod {
	objs, err := indexer.ByIndex(claimIndex, namespace+"/"+claim)
	if err != nil {
		panic(err)
	}
	pods := make([]*corev1.Pod, 0, len(objs))
	for _, obj := range objs {
		pods = append(pods, obj.(*corev1.Pod))
	}
	return pods
}

// ClaimNames lists the PersistentVolumeClaims of a pod's volumes, those of its ephemeral volumes too.
func ClaimNames(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, ephemeral.VolumeClaimName(pod, v))
		}
	}
	return names
}
