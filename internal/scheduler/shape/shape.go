// Package shape compiles a pod into the part of it that placement depends on.
//
// Ten thousand pods of one Deployment ask the same question of the cluster. A Shape is that question, compiled once
// and shared: what the pod requests, which nodes it selects and tolerates, which other pods it wants to be near to or
// far from, its host ports and images, and the namespace and labels by which other pods select it. Whatever differs
// between replicas (name, UID, priority, times) is not part of it.
//
//	pod ──► Table.Compile ──► canonical key ──► known: the same *Shape again
//	                                       └──► new:   selectors parsed, requests summed, terms interned
//
// Two pods have the same shape exactly if they have the same *Shape, so everything computed for a shape (verdicts,
// scores, counters) can be cached under that pointer. A Table counts the users of each shape and forgets those that
// nobody has used for a while.
package shape

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Shape is everything of a pod that placement depends on. It never changes once compiled.
type Shape struct {
	Class *Class
	// NodeName is spec.nodeName of a pod that is compiled before it has been bound.
	NodeName string
	// Requests holds the resources requested, greater than zero, in the order of their index.
	Requests []Request
	// Scoring holds the requests that scores count with before the pod has a node: 100m CPU and 200 MiB for each container
	// that names none. As in kube-scheduler, requests of the pod itself (pod-level resources) do not show in it.
	Scoring [2]int64
	// Counted is what a pod of the shape adds to its node's sum for scores once it is there. A pod's own requests are in it,
	// and only resources that neither the pod nor any container names get defaults.
	Counted [2]int64

	Tolerations []v1.Toleration
	// Node is what spec.nodeSelector and the required node affinity select; nil if the pod selects nothing.
	Node *NodeSelector
	// Preferred are the preferred node affinity terms.
	Preferred []PreferredNode

	Ports []Port
	// Images are the normalised names of the images of all containers and volumes, with repetitions.
	Images []string

	// Claims are the PersistentVolumeClaims of the pod's volumes, Disks those in-line volumes that exclude each other.
	Claims []Claim
	Disks  []Disk
	// Features are the names of what a node must declare to run the pod.
	Features []string

	Spread []SpreadConstraint
	// Owner is the controller of the pod: with the pod's labels it decides which default spread constraints apply.
	Owner Owner

	Affinity, AntiAffinity                   []*Term
	PreferredAffinity, PreferredAntiAffinity []WeightedTerm

	key  string
	refs int
}

// Class is a namespace with a set of labels: what other pods' selectors see of a pod.
type Class struct {
	Namespace string
	Labels    labels.Set

	key  string
	refs int
}

// Request is an amount of one resource: milli-CPUs for CPU, bytes or units for all others.
type Request struct {
	Resource int
	Amount   int64
}

// Port is a port of the node that the pod takes.
type Port struct {
	Protocol v1.Protocol
	Number   int32
	// HostIP is the address of the node; "0.0.0.0" stands for all.
	HostIP string
}

// Owner names the controller of a pod.
type Owner struct {
	APIVersion, Kind, Name string
}

// Request returns the amount requested of the resource with the given index, 0 if none is.
func (s *Shape) Request(resource int) int64 {
	for _, r := range s.Requests {
		if r.Resource == resource {
			return r.Amount
		}
	}
	return 0
}

// HasTerms reports whether pods of this shape care for other pods through inter-pod affinity or anti-affinity.
func (s *Shape) HasTerms() bool {
	return len(s.Affinity)+len(s.AntiAffinity)+len(s.PreferredAffinity)+len(s.PreferredAntiAffinity) > 0
}
