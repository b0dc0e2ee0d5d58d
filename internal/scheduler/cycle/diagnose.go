package cycle

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// Diagnosis is why no node takes a pod.
type Diagnosis struct {
	Nodes int
	// Rejections count the nodes by status. Together they are Nodes.
	Rejections []Rejection
	// Refusal is why no node was looked at, if so.
	Refusal string
}

// Rejection is a status that a number of nodes share.
type Rejection struct {
	plugin.Status
	Nodes int
}

// Diagnose tells why no node takes a pod, as of now.
func (e *Engine) Diagnose(pod *Pod) Diagnosis {
	d := Diagnosis{Nodes: e.ledger.Nodes()}
	v := e.view(pod.Shape)
	if r := v.restriction(); r.named {
		d.named(e, v, pod, r)
		return d
	}
	v.refresh()
	counts := map[rejection]int{}
	e.countRejections(v, counts)
	kept := append(ledger.Bitmap(nil), v.pass...)
	for i := range v.filters {
		if f := &v.filters[i]; f.global {
			f.Column(kept, func(_ int32, code plugin.Code) { counts[rejection{i, code}]++ })
		}
	}
	for _, slot := range e.contested(pod) {
		if r := v.rejects(slot); r.filter >= 0 {
			counts[r]--
		}
		counts[e.rejection(v, pod, slot)]++
	}
	d.collect(v, counts)
	return d
}

// countRejections counts what the local filters said. Where the profile asks a global filter before a local one, nodes
// that the local one rejects are put before all filters again, so that the first in order is the one that counts.
func (e *Engine) countRejections(v *view, counts map[rejection]int) {
	firstGlobal := len(v.filters)
	for i := range v.filters {
		if v.filters[i].global {
			firstGlobal = min(firstGlobal, i)
		}
	}
	again := false
	for number := int(dead) + 1; number < len(v.verdicts.entries); number++ {
		entry := v.verdicts.entries[number]
		if n := int(v.verdicts.count[number]); n > 0 && entry.filter < firstGlobal {
			counts[entry] += n
		} else if n > 0 {
			again = true
		}
	}
	if !again {
		return
	}
	for slot, number := range v.verdict {
		if number > dead && v.verdicts.entries[number].filter > firstGlobal {
			counts[v.rejects(int32(slot))]++
		}
	}
}

// rejects puts one node before all filters.
func (v *view) rejects(slot int32) rejection { return v.rejectsBut(slot, 0) }

// rejectsBut is rejects without the filters in the mask.
func (v *view) rejectsBut(slot int32, mask uint64) rejection {
	for i := range v.filters {
		if mask>>i&1 != 0 {
			continue
		}
		if code := v.filters[i].Node(slot); code != plugin.Pass {
			return rejection{i, code}
		}
	}
	return rejection{filter: -1}
}

func (d *Diagnosis) collect(v *view, counts map[rejection]int) {
	for r, n := range counts {
		if n == 0 || r.filter < 0 {
			continue
		}
		d.Rejections = append(d.Rejections, Rejection{Status: v.filters[r.filter].Explain(r.code), Nodes: n})
	}
	slices.SortFunc(d.Rejections, func(a, b Rejection) int {
		return strings.Compare(a.Plugin+strings.Join(a.Reasons, "\n"), b.Plugin+strings.Join(b.Reasons, "\n"))
	})
}

// named diagnoses a pod that names its nodes: the others are rejected unseen.
func (d *Diagnosis) named(e *Engine, v *view, pod *Pod, r restriction) {
	counts := map[rejection]int{}
	for _, slot := range r.slots {
		counts[e.rejection(v, pod, slot)]++
	}
	d.collect(v, counts)
	if others := d.Nodes - len(r.slots); others > 0 {
		d.Rejections = append(d.Rejections, Rejection{r.outside, others})
	}
	if r.refused {
		d.Refusal = strings.Join(r.outside.Reasons, ", ")
	}
}

// Plugins returns the names of the plugins that rejected nodes, sorted.
func (d *Diagnosis) Plugins() []string {
	set := map[string]bool{}
	for _, r := range d.Rejections {
		for _, name := range strings.Split(r.Plugin, ",") {
			set[name] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// Message is the text that people know: how many nodes each reason counts for.
func (d *Diagnosis) Message() string {
	if d.Nodes == 0 {
		return "no nodes available to schedule pods"
	}
	text := fmt.Sprintf("0/%d nodes are available:", d.Nodes)
	if d.Refusal != "" {
		return text + " " + d.Refusal + "."
	}
	return text + " " + Summary(d.Rejections) + "."
}

// Summary lists the reasons of rejections with their number of nodes.
func Summary(rejections []Rejection) string {
	counts := map[string]int{}
	for _, r := range rejections {
		for _, reason := range r.Reasons {
			counts[reason] += r.Nodes
		}
	}
	var parts []string
	for reason, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
