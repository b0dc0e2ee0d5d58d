// Package worker carries a pod's life out: one worker a pod, each a goroutine that owns all that is known of its pod.
//
//	API (informer) ──Update──┐
//	runtime events ──Poke────┤   loop: observe the runtime, lifecycle.Decide,    ┌─► runtime calls, each in a goroutine
//	probes, timers ──────────┼──►      launch the actions, offer the status ─────┼─► status patches, one at a time
//	results of actions ──────┘                                                    └─► events
//
// Nothing here waits for a runtime call inside the loop: a deletion that comes while an image is pulled is acted on at once. When the
// context ends, the worker ends too and leaves the pod as it is; the next worker finds it in the runtime and goes on.
package worker
