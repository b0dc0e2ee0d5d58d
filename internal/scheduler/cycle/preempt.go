package cycle

import (
	"fmt"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// Preemption are the arguments of the plugin DefaultPreemption.
type Preemption struct {
	// MinCandidatePercentage and MinCandidates bound how many nodes are compared: that part of those where it could help,
	// but at least that number.
	MinCandidatePercentage, MinCandidates int
}

// The reasons for which preemption does not help on a node.
const (
	reasonNotHelpful = "Preemption is not helpful for scheduling"
	reasonNoVictims  = "No preemption victims found for incoming pod"
)

// Eviction is what preemption came to.
type Eviction struct {
	// Node is where room is to be made; empty if nowhere, and then Message tells why.
	Node    string
	Message string
	// Helpless tells that no node would take the pod whoever was evicted, so that it has no nomination to wait for.
	Helpless bool
	// Victims are to be deleted, the most important one first. Violations counts those whose budget is violated.
	Victims    []*ledger.Pod
	Violations int
	// Considered is on how many nodes pods were removed to see whether that helps.
	Considered int
}

// Preempts reports whether the profile preempts at all.
func (e *Engine) Preempts() bool { return e.profile.Preemption != nil }

// Preempt looks for pods of lower priority whose removal from one node would let the pod be placed there. never is
// spec.preemptionPolicy Never. The ledger is left as it is.
func (e *Engine) Preempt(pod *Pod, never bool) *Eviction {
	v := e.view(pod.Shape)
	if why := e.mayNotPreempt(v, pod, never); why != "" {
		return &Eviction{Message: "preemption: not eligible due to " + why}
	}
	slots := e.resolvable(v, pod)
	candidates, tried := e.candidates(v, pod, slots)
	if len(candidates) == 0 {
		return &Eviction{Message: e.noCandidates(tried), Helpless: true, Considered: len(slots)}
	}
	best := e.leastHarm(candidates)
	return &Eviction{
		Node: e.ledger.NodeName(best.slot), Victims: best.victims, Violations: best.violations, Considered: len(slots),
	}
}

// mayNotPreempt tells why a pod may not preempt others, if so. While pods that were preempted for it are still leaving
// the node it is nominated to, it has to wait.
func (e *Engine) mayNotPreempt(v *view, pod *Pod, never bool) string {
	if never {
		return "preemptionPolicy=Never."
	}
	slot, known := e.ledger.Slot(pod.Nominated)
	if !known {
		return ""
	}
	if _, outside := v.outside(slot); outside {
		return ""
	}
	if r := e.rejection(v, pod, slot); r.filter >= 0 && v.filters[r.filter].Explain(r.code).Verdict == plugin.Unresolvable {
		return ""
	}
	for _, other := range e.ledger.NodePods(slot) {
		if other.Preempted && other.Priority < pod.Priority {
			return "a terminating pod on the nominated node."
		}
	}
	return ""
}

// resolvable returns the nodes that reject the pod for a reason that the removal of pods could take away.
func (e *Engine) resolvable(v *view, pod *Pod) []int32 {
	r := v.restriction()
	if r.named {
		return slices.DeleteFunc(r.slots, func(slot int32) bool { return !e.removable(v, pod, slot) })
	}
	slots := v.resolvable()
	for _, slot := range e.contested(pod) {
		at, found := slices.BinarySearch(slots, slot)
		switch removable := e.removable(v, pod, slot); {
		case found && !removable:
			slots = slices.Delete(slots, at, at+1)
		case !found && removable:
			slots = slices.Insert(slots, at, slot)
		}
	}
	return slots
}

// removable reports whether a node rejects the pod, beside those nominated to it, for a reason that the removal of pods
// could take away.
func (e *Engine) removable(v *view, pod *Pod, slot int32) bool {
	r := e.rejection(v, pod, slot)
	return r.filter < 0 || v.filters[r.filter].Explain(r.code).Verdict == plugin.Unschedulable
}

// resolvable is for pods that do not name their nodes: what local filters said is known already.
func (v *view) resolvable() (slots []int32) {
	v.refresh()
	removable := make([]int8, len(v.verdicts.entries))
	last := v.globalsAreLast()
	v.ledger.Live.Each(func(slot int32) {
		number := v.verdict[slot]
		if number == 0 || !last {
			if v.removable(slot) {
				slots = append(slots, slot)
			}
			return
		}
		if removable[number] == 0 {
			removable[number] = -1
			if v.removable(slot) {
				removable[number] = 1
			}
		}
		if removable[number] > 0 {
			slots = append(slots, slot)
		}
	})
	return slots
}

// removable reports whether a node takes the pod, or rejects it for a reason that the removal of pods could take away.
func (v *view) removable(slot int32) bool {
	f, code := v.ask(slot)
	return code == plugin.Pass || f.Explain(code).Verdict == plugin.Unschedulable
}

// globalsAreLast reports whether the profile asks all local filters before the others, so that a local verdict is the
// first.
func (v *view) globalsAreLast() bool {
	for i := 1; i < len(v.filters); i++ {
		if v.filters[i-1].global && !v.filters[i].global {
			return false
		}
	}
	return true
}

// candidates tries nodes, from a random one on, until there are enough on which preemption helps. It also returns why it
// did not help on the others.
func (e *Engine) candidates(v *view, pod *Pod, slots []int32) (found []candidate, tried []Rejection) {
	if len(slots) == 0 {
		return nil, nil
	}
	if !e.ledger.HasLower(pod.Priority) {
		return nil, []Rejection{{Status: plugin.Status{Reasons: []string{reasonNoVictims}}, Nodes: len(slots)}}
	}
	enough := max(len(slots)*e.profile.Preemption.MinCandidatePercentage/100, e.profile.Preemption.MinCandidates)
	if e.options.Oracle {
		enough = len(slots)
	}
	offset, clean := 0, false
	if len(slots) > 1 && !e.options.Oracle {
		offset = e.random.IntN(len(slots))
	}
	for i := range slots {
		c, status := e.victimsOn(v, pod, slots[(offset+i)%len(slots)])
		if status != nil {
			tried = append(tried, Rejection{Status: *status, Nodes: 1})
			continue
		}
		found = append(found, *c)
		clean = clean || c.violations == 0
		if clean && len(found) >= enough {
			break
		}
	}
	return found, tried
}

// noCandidates is the message if preemption helps nowhere.
func (e *Engine) noCandidates(tried []Rejection) string {
	rest := e.ledger.Nodes()
	for _, r := range tried {
		rest -= r.Nodes
	}
	if rest > 0 {
		tried = append(tried, Rejection{Status: plugin.Status{Reasons: []string{reasonNotHelpful}}, Nodes: rest})
	}
	return fmt.Sprintf("preemption: 0/%d nodes are available: %s.", e.ledger.Nodes(), Summary(tried))
}
