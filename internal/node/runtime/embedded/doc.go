// Package embedded is the container runtime inside the agent: it implements the Kubernetes CRI in process, with no daemon beside it.
//
// A pod sandbox is a helper process (runtime-helper, whose binary is embedded here) that was started inside the pod's new namespaces and
// stays the parent of the pod's containers; package protocol is how the two talk. This package keeps the books: which sandboxes and
// containers there are, what was asked of them, and how they ended. It makes an OCI spec of what the CRI asks (spec), mounts root file
// systems from the image store (package image), asks the network for addresses, and reports changes as CRI events as the helpers tell
// them. Nothing is polled.
//
//	ROOT/sandboxes/ID/   sandbox.json, helper.log
//	ROOT/containers/ID/  container.json; state.json, which the helper writes; rw/, what the container wrote
//	RUN/ID/              helper.sock, ns/ (the pod's namespaces, pinned), rootfs/, io/; a reboot empties RUN
//
// What is acknowledged is on disk. New reads all of it back, connects to the helpers that run and starts those anew that were killed, so
// that neither the end of the agent nor that of a helper ends a container or loses its exit code.
package embedded
