// Package lifecycle decides what a pod needs next. It is the node agent's head: a pure function from the pod that the API asks for
// and the containers that the runtime has to the calls that bring the two together, and to the status that tells the API.
//
//	pod (spec, deletion) ─┐
//	observed (sandboxes,  ├─► Decide ─► Plan: actions for the runtime, events, status, when to look again
//	 containers)          │
//	memory (back-off,    ─┘
//	 probes, failures)
//
// A pod passes through three stages and never goes back: Running (containers are started and restarted), Ending (they are stopped in
// order) and Ended (nothing of it runs any more). What has to be remembered between two decisions, and cannot be observed, is in
// Memory, which Decide updates. Decide calls nothing and reads no clock, so that tests replay whole lives of pods in microseconds.
//
// Reasons, messages and the order of things are those that Kubernetes users know from the kubelet.
package lifecycle
