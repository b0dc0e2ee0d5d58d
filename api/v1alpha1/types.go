package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NodeGroup is a number of simulated nodes that are made from one template.
type NodeGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeGroupSpec   `json:"spec"`
	Status NodeGroupStatus `json:"status,omitempty"`
}

// NodeGroupStatus tells how far the group is.
type NodeGroupStatus struct {
	// Nodes is how many nodes there are that belong to the group.
	Nodes int32 `json:"nodes,omitempty"`
}

// NodeGroupSpec says how many nodes there are, and what they look like.
type NodeGroupSpec struct {
	// Count is the number of nodes.
	Count int32 `json:"count"`
	// Template is a Node. Its strings, those of annotations excepted, may hold patterns that differ from node to node: {index} is the node's number from 1,
	// {index:4} the same with at least four digits, {index/40} the number of the block of 40 nodes, from 1, to which the node belongs, and {a,b,c} is a, b or c, one
	// node after the other. Without a name nodes are called after the group.
	Template runtime.RawExtension `json:"template,omitempty"`
}

// PodBehavior says what pods do that run on simulated nodes. Where several are about a pod, each field comes from the first one that has it: that of the highest
// priority, and among equals the first by name.
type PodBehavior struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PodBehaviorSpec `json:"spec"`
}

// PodBehaviorSpec is a behavior and the pods that have it.
type PodBehaviorSpec struct {
	// Priority orders rules, the highest first.
	Priority int32 `json:"priority,omitempty"`
	// Selector says which pods the rule is about; all when it is empty.
	Selector PodSelector `json:"selector,omitempty"`
	// Behavior is what they do.
	Behavior Behavior `json:"behavior"`
}

// PodSelector selects pods to which all that it says applies. Patterns are texts in which * stands for any text.
type PodSelector struct {
	// Namespaces are patterns of which one must match the pod's namespace.
	Namespaces []string `json:"namespaces,omitempty"`
	// Names are patterns of which one must match the pod's name.
	Names []string `json:"names,omitempty"`
	// Pods selects by the pod's labels.
	Pods *metav1.LabelSelector `json:"pods,omitempty"`
	// Nodes selects by the labels of the pod's node.
	Nodes *metav1.LabelSelector `json:"nodes,omitempty"`
	// Owners are kinds ("Job") of which one must be that of the pod's controller.
	Owners []string `json:"owners,omitempty"`
}

// Behavior is what a pod does.
type Behavior struct {
	// StartDelay is how long it takes until the pod's first container can start.
	StartDelay Duration `json:"startDelay,omitempty"`
	// Containers says what containers do. Each field comes from the first entry that has it and is about the container.
	Containers []ContainerBehavior `json:"containers,omitempty"`
}

// Duration is a duration ("1m30s"), or a distribution from which one is drawn: uniform(10s,60s), normal(30s,5s) by mean and standard deviation, exponential(30s) by
// mean, lognormal(30s,0.5) by median and the logarithm's standard deviation, weibull(30s,1.5) by scale and shape. What is drawn depends on the fleet's seed and on the
// pod's UID, and stays the same over a restart.
type Duration string

// ContainerBehavior is what some containers do, in some of their runs.
type ContainerBehavior struct {
	// Names are patterns of which one must match the container's name, if there are any.
	Names []string `json:"names,omitempty"`
	// Images are patterns of which one must match the container's image, if there are any.
	Images []string `json:"images,omitempty"`
	// Commands are patterns of which one must match the container's command and arguments, with single spaces between, if there are any.
	Commands []string `json:"commands,omitempty"`
	// Attempts, if it is set, makes the entry be about the first so many runs of the container only.
	Attempts int32 `json:"attempts,omitempty"`
	// Percent, if it is set, makes the entry be about that share of runs only, drawn by chance.
	Percent *int32 `json:"percent,omitempty"`

	// Pull is how the image is pulled.
	Pull *Pull `json:"pull,omitempty"`
	// RunFor is how long the container runs. Without it an init container ends at once, any other one when it is stopped; but one that has an exit code or reason
	// ends at once too.
	RunFor Duration `json:"runFor,omitempty"`
	// ExitCode is how it ends by itself; 0 unless there is a reason that implies another one.
	ExitCode *int32 `json:"exitCode,omitempty"`
	// ExitReason is why it ends: OOMKilled has exit code 137. Completed or Error by default.
	ExitReason string `json:"exitReason,omitempty"`
	// ExitMessage is its termination message.
	ExitMessage string `json:"exitMessage,omitempty"`
	// TerminationDelay is how long it takes to end when it is told to. It is killed at the end of its grace period.
	TerminationDelay Duration `json:"terminationDelay,omitempty"`
	// TerminationExitCode is how it then ends; 143 by default, and 137 when it is killed.
	TerminationExitCode *int32 `json:"terminationExitCode,omitempty"`
	// Probes says when probes fail. They succeed otherwise.
	Probes *Probes `json:"probes,omitempty"`
	// Usage is what the container uses.
	Usage *Usage `json:"usage,omitempty"`
	// Logs is what it writes.
	Logs *Logs `json:"logs,omitempty"`
}

// Pull is how an image is pulled.
type Pull struct {
	// Delay is how long it takes. An image that the node has, by its status, and that the pod does not want to be pulled always takes no time.
	Delay Duration `json:"delay,omitempty"`
	// Error, if it is set, is why the pull fails.
	Error string `json:"error,omitempty"`
	// Failures, if it is set, is after how many failures the pull succeeds.
	Failures int32 `json:"failures,omitempty"`
}

// Probes are the probes of a container; those count that the container has in its spec.
type Probes struct {
	Startup   *Probe `json:"startup,omitempty"`
	Readiness *Probe `json:"readiness,omitempty"`
	Liveness  *Probe `json:"liveness,omitempty"`
}

// Probe is when a probe fails.
type Probe struct {
	// FailAfter is when it begins to fail, counted from the start of the container.
	FailAfter Duration `json:"failAfter,omitempty"`
	// FailFor is for how long; without it, for good.
	FailFor Duration `json:"failFor,omitempty"`
}

// Usage is what a container uses. What is not said is the container's request.
type Usage struct {
	CPU    *Curve `json:"cpu,omitempty"`
	Memory *Curve `json:"memory,omitempty"`
}

// Curve is an amount over time, with straight lines between its points.
type Curve struct {
	// Points are in the order of time. Before the first and after the last the amount stays.
	Points []Point `json:"points"`
	// Repeat begins anew after the last point.
	Repeat bool `json:"repeat,omitempty"`
	// NoisePercent is by how much, up or down, the amount differs from the line, anew every ten seconds.
	NoisePercent int32 `json:"noisePercent,omitempty"`
}

// Point is an amount at a time.
type Point struct {
	// At is counted from the start of the container.
	At metav1.Duration `json:"at,omitempty"`
	// Value is a quantity (250m, 64Mi), or a percentage of the container's request (80%).
	Value string `json:"value"`
}

// Logs is what a container writes.
type Logs struct {
	// Lines are written one after the other. {n} in a line is its number, from 1.
	Lines []string `json:"lines"`
	// Every is the time from one line to the next; without it all lines are written at the start.
	Every metav1.Duration `json:"every,omitempty"`
	// Repeat begins anew after the last line, as long as the container runs. It needs Every.
	Repeat bool `json:"repeat,omitempty"`
}
