// Package controller is what all of Bayplan's controllers share.
//
// A controller compares what objects ask for with what is there and writes the difference, through the Kubernetes API and
// nothing else. Data passes through every controller in the same way:
//
//	informers ──events──► handlers ──key──► Loop (a work queue) ──key──► sync ──writes──► API server
//	    ▲                                                                                    │
//	    └────────────────────────────────── watch ◄──────────────────────────────────────────┘
//
// A handler only works out which object must be looked at and adds its key. The sync reads the informers' caches, never the
// event, so that it does not matter how many events led to it or in which order they came (level-triggered), and what it writes
// is the same if it runs twice (idempotent). A sync that fails is tried again with a growing delay; a sync that waits for time to
// pass asks for its key at the moment when something can change. Nothing polls.
//
// Caches lag behind writes. Where acting twice would hurt, as in creating pods, the Expectations of a key hold further writes back
// until the cache has shown the earlier ones, told apart by UID. Where the name of what is made follows from its content (a
// Deployment's ReplicaSets, a Job's CronJob run), a second attempt fails with AlreadyExists, which does the same.
//
// The other pieces are the rules that several workload controllers have in common: which pods belong to an owner and how ownership is
// taken and given up (Claimer), how pods are made from a template and removed (PodControl), how many to make at a time (SlowStart), which
// to remove first (RankForDeletion), and the hashes that name revisions of a template.
package controller
