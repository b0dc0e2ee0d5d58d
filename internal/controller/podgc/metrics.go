package podgc

import "github.com/bayplan/bayplan/internal/controller"

// Reasons why pods are removed, as the label of the metrics has them.
const (
	reasonOrphaned     = "orphaned"
	reasonOutOfService = "out-of-service"
	reasonTerminated   = "terminated"
	reasonUnscheduled  = "unscheduled"
)

var (
	removals = controller.Counter("pod_gc_collector", "force_delete_pods_total",
		"Pods that were removed without waiting for a node.", "namespace", "reason")
	failures = controller.Counter("pod_gc_collector", "force_delete_pod_errors_total",
		"Failed attempts to remove a pod without waiting for a node.", "namespace", "reason")
)
