package deployment

import (
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Annotations that kubectl rollout and other tools read.
const (
	// RevisionAnnotation numbers the versions of the template; on the Deployment it is the current one.
	RevisionAnnotation = "deployment.kubernetes.io/revision"
	// RevisionHistoryAnnotation lists the earlier numbers of a ReplicaSet that came back.
	RevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	// DesiredReplicasAnnotation and MaxReplicasAnnotation are the Deployment's size, without and with the surge, when the
	// ReplicaSet was last scaled.
	DesiredReplicasAnnotation = "deployment.kubernetes.io/desired-replicas"
	MaxReplicasAnnotation     = "deployment.kubernetes.io/max-replicas"

	rollbackAnnotation = "deprecated.deployment.rollback.to"
)

// maxHistoryLength is the number of characters of RevisionHistoryAnnotation, beyond which the oldest entries are dropped.
const maxHistoryLength = 2000

// ownAnnotations stay where they are: a Deployment's other annotations are copied to its ReplicaSets.
var ownAnnotations = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true,
	RevisionAnnotation:                 true,
	RevisionHistoryAnnotation:          true,
	DesiredReplicasAnnotation:          true,
	MaxReplicasAnnotation:              true,
	rollbackAnnotation:                 true,
}

func revisionOf(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func intAnnotation(rs *appsv1.ReplicaSet, key string) (int32, bool) {
	value, found := rs.Annotations[key]
	if !found {
		return 0, false
	}
	n, err := strconv.ParseInt(value, 10, 32)
	return int32(n), err == nil
}

// setRevisionAnnotations copies the Deployment's annotations to its new ReplicaSet and gives it the revision, unless it has a higher
// one. It tells whether anything changed.
func setRevisionAnnotations(d *appsv1.Deployment, rs *appsv1.ReplicaSet, revision int64) (changed bool) {
	for key, value := range d.Annotations {
		if !ownAnnotations[key] {
			changed = annotate(rs, key, value) || changed
		}
	}
	before, had := rs.Annotations[RevisionAnnotation]
	if had && revisionOf(rs) >= revision && revisionOf(rs) < math.MaxInt64 {
		return changed
	}
	changed = annotate(rs, RevisionAnnotation, strconv.FormatInt(revision, 10)) || changed
	if had {
		annotate(rs, RevisionHistoryAnnotation, appendHistory(rs.Annotations[RevisionHistoryAnnotation], before))
	}
	return changed
}

func appendHistory(history, revision string) string {
	if history == "" {
		return revision
	}
	entries := append(strings.Split(history, ","), revision)
	for total := len(history) + 1 + len(revision); total > maxHistoryLength && len(entries) > 1; {
		total -= len(entries[0]) + 1
		entries = entries[1:]
	}
	return strings.Join(entries, ",")
}

// setSizeAnnotations notes the Deployment's size on the ReplicaSet and tells whether that changed anything.
func setSizeAnnotations(rs *appsv1.ReplicaSet, desired, maximum int32) bool {
	a := annotate(rs, DesiredReplicasAnnotation, strconv.Itoa(int(desired)))
	b := annotate(rs, MaxReplicasAnnotation, strconv.Itoa(int(maximum)))
	return a || b
}

func annotate(rs *appsv1.ReplicaSet, key, value string) bool {
	if old, found := rs.Annotations[key]; found && old == value {
		return false
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[key] = value
	return true
}
