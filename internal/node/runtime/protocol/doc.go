// Package protocol is the wire between the agent's embedded runtime and the helper process that holds one pod.
//
// The helper listens on a unix socket. A connection carries one call: the client writes one Request frame, the helper answers
// with one or more Reply frames and closes. A frame is a big-endian uint32 length and that many bytes of JSON, at most MaxFrame
// of them. Files (a pipe for the output of an exec session, the master side of a terminal, a socket dialled inside the pod's network) travel
// beside a frame as SCM_RIGHTS, so that bulk data never passes through JSON and never through a second process.
//
// A Watch call stays open: first it replays the state of every container of the pod, then it tells each change as it happens. That is how the agent
// learns of an exit without polling, and how a new agent process learns what happened while there was none.
//
// Both ends are built from this package, but not always from the same version of it: a pod's helper outlives the agent that
// started it. Fields are therefore only ever added, and a helper refuses a call that it does not know.
//
// The package uses the standard library only, so that the helper's module stays independent of the product's dependencies.
package protocol
