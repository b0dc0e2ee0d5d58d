// Package node is the node agent: what the kubelet is in Kubernetes. It registers its Node, keeps it alive by a Lease, runs the pods that are
// bound to it through a container runtime (CRI), and serves the node API (logs, exec, stats).
//
//	          ┌─ register, lease, status ─► Node, Lease
//	client-go │
//	          └─ pod informer ─► workers (package worker, one a pod) ─► CRI
//	CRI events ──────────────────▲
//
// Everything is triggered: pods by the informer, containers by the runtime's events, with a relist once a minute as a safety net. The agent
// keeps no state of its own: what it finds in the runtime and in the API after a restart is all that it needs, so that stopping it leaves the
// pods alone.
package node
