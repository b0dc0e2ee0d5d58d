// Package controllertest is a Kubernetes API in memory, small but with the rules that controllers depend on, and a script runner on top of it.
//
// API answers HTTP requests of the ordinary client-go clients through a RoundTripper, with no network between:
//
//	kubernetes, metadata, discovery clients ──http.Request──► API.RoundTrip ──► store ──► watches
//
// It has resource versions and conflicts, generations, UIDs, finalizers, graceful deletion of pods, propagation policies, preconditions, the status
// sub-resource, namespaces that refuse new content while they are deleted, all three kinds of patch, selectors, watch lists,
// and metadata-only representations. It does not validate or default. Faults can be put in: errors before and after a write took place, and
// watches that deliver late.
//
// Everything works inside a testing/synctest bubble, so that time is fake and Env.Settle waits exactly until all controllers
// have nothing left to do.
//
// Scripts (testdata/*.txt) are commands, each followed by a line "----" and what came of it: writes, events and what the command prints.
// Run with -update to rewrite them.
package controllertest
