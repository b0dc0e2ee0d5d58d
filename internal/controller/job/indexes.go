package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// indexes is a set of completion indexes, kept as sorted, disjoint, non-adjacent intervals: a Job may have a hundred thousand of them.
type indexes []interval

type interval struct{ first, last int }

// parseIndexes reads "0,2-5,9". Indexes at or beyond completions and what cannot be read are dropped.
func parseIndexes(text string, completions int) indexes {
	var out indexes
	for part := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(high); err != nil {
				continue
			}
		}
		last = min(last, completions-1)
		if first >= 0 && first <= last {
			out = append(out, interval{first, last})
		}
	}
	return out.normal()
}

// normal sorts and joins.
func (x indexes) normal() indexes {
	slices.SortFunc(x, func(a, b interval) int { return cmp.Compare(a.first, b.first) })
	var out indexes
	for _, i := range x {
		if n := len(out); n > 0 && i.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, i.last)
			continue
		}
		out = append(out, i)
	}
	return out
}

// with adds single indexes.
func (x indexes) with(more ...int) indexes {
	out := slices.Clone(x)
	for _, i := range more {
		out = append(out, interval{i, i})
	}
	return out.normal()
}

func (x indexes) has(i int) bool {
	_, found := slices.BinarySearchFunc(x, i, func(v interval, i int) int {
		switch {
		case v.last < i:
			return -1
		case v.first > i:
			return 1
		}
		return 0
	})
	return found
}

func (x indexes) count() (n int) {
	for _, i := range x {
		n += i.last - i.first + 1
	}
	return n
}

// common counts the indexes that are in both sets.
func (x indexes) common(y indexes) (n int) {
	for i, j := 0, 0; i < len(x) && j < len(y); {
		if low, high := max(x[i].first, y[j].first), min(x[i].last, y[j].last); low <= high {
			n += high - low + 1
		}
		if x[i].last < y[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}

// String is the form of status.completedIndexes: two neighbours are written as a range like longer runs.
func (x indexes) String() string {
	parts := make([]string, 0, len(x))
	for _, i := range x {
		switch i.last - i.first {
		case 0:
			parts = append(parts, strconv.Itoa(i.first))
		case 1:
			parts = append(parts, strconv.Itoa(i.first), strconv.Itoa(i.last))
		default:
			parts = append(parts, strconv.Itoa(i.first)+"-"+strconv.Itoa(i.last))
		}
	}
	return strings.Join(parts, ",")
}

// isIndexed tells whether the pods of the Job have completion indexes.
func isIndexed(job *batchv1.Job) bool {
	return job.Spec.CompletionMode != nil && *job.Spec.CompletionMode == batchv1.IndexedCompletion
}

// indexOf is the completion index of a pod, or -1 if it has none that counts.
func indexOf(pod *corev1.Pod, completions int) int {
	i, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil || i < 0 || i >= completions {
		return -1
	}
	return i
}

func completionsOf(job *batchv1.Job) int { return int(ptr.Deref(job.Spec.Completions, 0)) }
