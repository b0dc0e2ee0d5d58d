package controller

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// TemplateHash is the value of pod-template-hash and of controller-revision-hash in the style of DaemonSets: FNV-32a of the template as
// text, and of the collision count if there is one, in letters that cannot form words. It equals Kubernetes' hash, so a cluster that
// moves over keeps its ReplicaSets.
func TemplateHash(template *corev1.PodTemplateSpec, collisionCount *int32) string {
	hasher := fnv.New32a()
	HashObject(hasher, *template)
	if collisionCount != nil {
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisionCount))
		hasher.Write(count[:])
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// HashObject adds an object to a hash: its printed form, with pointers followed and maps in the order of their keys.
func HashObject(hasher hash.Hash, obj any) {
	fmt.Fprint(hasher, dump.ForHash(obj))
}
