// Package v1alpha1 has Bayplan's own API types, of group bayplan.dev: those by which simulated nodes are described.
//
// A NodeGroup is a number of simulated nodes that are made from one template. A PodBehavior says what pods do that run on simulated nodes, and which pods
// it is about; the same fields can be given to a single pod by the annotation AnnotationBehavior. Nodes are made to fail by the annotation AnnotationFault.
package v1alpha1

const (
	// Group and Version are those of all types of this package.
	Group   = "bayplan.dev"
	Version = "v1alpha1"
	// APIVersion is the two together, as manifests have it.
	APIVersion = Group + "/" + Version

	// LabelSimulated, when it is "true" on a Node, hands the Node to the fleet: no machine stands behind it.
	LabelSimulated = Group + "/simulated"
	// LabelNodeGroup names the group to which a simulated Node belongs.
	LabelNodeGroup = Group + "/node-group"
	// AnnotationBehavior is a Behavior, in YAML, of the one pod that carries it. It goes before what rules say.
	AnnotationBehavior = Group + "/behavior"
	// AnnotationFault is what is wrong with a simulated Node: one Fault, or several with commas between. It is removed to let the node recover.
	AnnotationFault = Group + "/fault"
	// AnnotationFaultUntil is the time (RFC 3339) at which the node recovers by itself.
	AnnotationFaultUntil = Group + "/fault-until"
)

// Fault is a way in which a simulated node fails.
type Fault string

// The faults.
const (
	// FaultSilent: the node's agent hangs. It sends no heartbeats and tells nothing of its pods, which run on; its logs can still be read.
	FaultSilent Fault = "Silent"
	// FaultUnreachable: the same, and the node cannot be reached either.
	FaultUnreachable Fault = "Unreachable"
	// FaultNotReady: the node tells that its container runtime is down. No container starts.
	FaultNotReady Fault = "NotReady"
	// FaultMemoryPressure: the node is short of memory. It tells so and evicts pods that use more than they requested.
	FaultMemoryPressure Fault = "MemoryPressure"
	// FaultDiskPressure and FaultPIDPressure: the node tells that it is short of disk space or of processes.
	FaultDiskPressure Fault = "DiskPressure"
	FaultPIDPressure  Fault = "PIDPressure"
)

// Faults are all of them.
func Faults() []Fault {
	return []Fault{FaultSilent, FaultUnreachable, FaultNotReady, FaultMemoryPressure, FaultDiskPressure, FaultPIDPressure}
}
