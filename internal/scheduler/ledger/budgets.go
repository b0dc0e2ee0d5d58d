package ledger

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// Budget is what preemption has to know of a PodDisruptionBudget.
type Budget struct {
	Namespace, Name string
	// Selector selects nothing if it is empty.
	Selector labels.Selector
	// Allowed is how many more pods may be disrupted.
	Allowed int32
	// Disrupted are the names of pods whose disruption has been counted already.
	Disrupted map[string]bool
}

// covers reports whether disrupting the pod uses the budget up.
func (b *Budget) covers(pod *Pod) bool {
	class := pod.Shape.Class
	return b.Namespace == class.Namespace && len(class.Labels) > 0 && !b.Selector.Empty() &&
		b.Selector.Matches(class.Labels) && !b.Disrupted[pod.Name]
}

// SetBudget records a budget.
func (l *Ledger) SetBudget(b *Budget) { l.budgets[b.Namespace+"/"+b.Name] = b }

// DeleteBudget forgets a budget.
func (l *Ledger) DeleteBudget(namespace, name string) { delete(l.budgets, namespace+"/"+name) }

// Violating tells for each pod whether its disruption, after that of those before it, would violate a budget.
func (l *Ledger) Violating(pods []*Pod) []bool {
	out := make([]bool, len(pods))
	if len(l.budgets) == 0 {
		return out
	}
	names := slices.Sorted(maps.Keys(l.budgets))
	left := make([]int32, len(names))
	for i, name := range names {
		left[i] = l.budgets[name].Allowed
	}
	for p, pod := range pods {
		for i, name := range names {
			if !l.budgets[name].covers(pod) {
				continue
			}
			// Once it has violated one, a pod uses up none of the others.
			if left[i]--; left[i] < 0 {
				out[p] = true
				break
			}
		}
	}
	return out
}
