// Package peer compares Bayplan's scheduler with kube-scheduler, decision by decision.
//
// One world of random nodes, pods, namespaces, services and budgets is told to both: to Bayplan's core, which counts
// events as they come, and to the cache and the plugins of kube-scheduler itself. Both are then asked about the same
// pods:
//
//	maker ──► world ──► core.Core: Examine, Decide, Diagnose, Preempt ──┐
//	             └────► reference: PreFilter ... NormalizeScore, dry run ┴──► verdicts, which must be equal
//
// Equal means: the same feasible nodes; for every other node the same plugin, reasons and whether preemption could help;
// every plugin's score of every node before and after normalisation; the totals; the node chosen; the message; and for
// preemption the victims, on a node that the reference thinks as good as its own choice.
//
// The module is its own because the product may not depend on k8s.io/kubernetes. run.sh runs everything, from a fixed seed;
// -seed takes another one. Every difference that was ever found is a case in testdata.
package peer
