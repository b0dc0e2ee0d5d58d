package peer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// verdict is what a scheduler says of one pod, in words that both sides can be put into.
type verdict struct {
	rejected map[string]rejection
	feasible map[string]scored
	// chosen is the node the pod goes to, message why it goes nowhere.
	chosen, message string
}

type rejection struct {
	plugin       string
	unresolvable bool
	// reasons are sorted: the reference lists them in the order of a map.
	reasons string
}

type scored struct {
	parts map[string]part
	total int64
}

type part struct{ raw, normalised int64 }

func newVerdict() *verdict {
	return &verdict{rejected: map[string]rejection{}, feasible: map[string]scored{}}
}

func (v *verdict) reject(node, plugin string, status *fwk.Status) {
	v.rejected[node] = rejection{plugin, status.Code() == fwk.UnschedulableAndUnresolvable, joined(status.Reasons())}
}

func joined(reasons []string) string {
	return strings.Join(slices.Sorted(slices.Values(reasons)), "; ")
}

// verdictOf is what Bayplan's engine says.
func verdictOf(e *cycle.Engine, l *ledger.Ledger, pod *cycle.Pod) *verdict {
	v := newVerdict()
	x := e.Examine(pod)
	for _, node := range x.Nodes {
		if s := node.Rejected; s != nil {
			v.rejected[node.Node] = rejection{s.Plugin, s.Verdict == plugin.Unresolvable, joined(s.Reasons)}
			continue
		}
		parts := map[string]part{}
		for i, p := range node.Parts {
			parts[x.Plugins[i].Name] = part{p.Raw, p.Normalized}
		}
		v.feasible[node.Node] = scored{parts, node.Total}
	}
	if d := e.Decide(pod); d.Slot != ledger.None {
		v.chosen = l.NodeName(d.Slot)
	} else {
		diagnosis := e.Diagnose(pod)
		v.message = diagnosis.Message()
	}
	return v
}

// differences lists what of two verdicts is not the same, the reference's first.
func (v *verdict) differences(ours *verdict) (out []string) {
	note := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, node := range slices.Sorted(maps.Keys(v.rejected)) {
		if r := ours.rejected[node]; r != v.rejected[node] {
			note("%s is rejected by %+v, here by %+v", node, v.rejected[node], r)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(v.feasible)) {
		want, have := v.feasible[node], ours.feasible[node]
		if have.parts == nil {
			note("%s is feasible, here rejected by %+v", node, ours.rejected[node])
			continue
		}
		for _, name := range scorers(want.parts, have.parts) {
			if want.parts[name] != have.parts[name] {
				note("%s: %s scores %+v, here %+v", node, name, want.parts[name], have.parts[name])
			}
		}
		if want.total != have.total {
			note("%s: total %d, here %d", node, want.total, have.total)
		}
	}
	if n, m := len(v.rejected)+len(v.feasible), len(ours.rejected)+len(ours.feasible); n != m {
		note("%d nodes, here %d", n, m)
	}
	if v.chosen != ours.chosen {
		note("goes to %q, here to %q", v.chosen, ours.chosen)
	}
	if v.message != ours.message {
		note("message %q, here %q", v.message, ours.message)
	}
	return out
}

// scorers are the plugins that score. One that has nothing to say is the same as one that says 0.
func scorers(a, b map[string]part) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// totals is how many different totals there are.
func (v *verdict) totals() int {
	set := map[int64]bool{}
	for _, s := range v.feasible {
		set[s.total] = true
	}
	return len(set)
}

// candidate is a node on which preemption would help, with the victims and what nodes are compared by.
type candidate struct {
	node    string
	victims []string
	rank    rank
}

type rank struct {
	violations, highest, sum int64
	pods                     int
	earliest                 int64
}

func candidateOf(node string, victims *extenderv1.Victims) candidate {
	c := candidate{node: node, rank: rank{violations: victims.NumPDBViolations, pods: len(victims.Pods)}}
	for i, pod := range victims.Pods {
		c.victims = append(c.victims, pod.Name)
		priority := int64(*pod.Spec.Priority)
		if i == 0 {
			c.rank.highest = priority
		}
		c.rank.sum += priority + 1<<31
	}
	if at := util.GetEarliestPodStartTime(victims); at != nil {
		c.rank.earliest = at.UnixNano()
	}
	return c
}
