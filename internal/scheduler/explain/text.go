package explain

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
)

// Text writes an explanation for people to read. now is what ages are told from.
func Text(out io.Writer, namespace, name string, x *core.Explanation, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "Pod:\t%s/%s\n", namespace, name)
	fmt.Fprintf(w, "Place:\t%s\n", place(x, now))
	for _, line := range []struct{ name, value string }{
		{"Node", x.Node}, {"Nominated", x.Nominated}, {"Waits for", strings.Join(x.WaitsFor, ", ")}, {"Last attempt", x.Message},
	} {
		if line.value != "" {
			fmt.Fprintf(w, "%s:\t%s\n", line.name, line.value)
		}
	}
	if x.Record != nil {
		record(w, x.Record)
	}
	return w.Flush()
}

func place(x *core.Explanation, now time.Time) string {
	text := x.Place
	if x.Since != nil {
		text += fmt.Sprintf(" for %s", now.Sub(*x.Since).Round(time.Second))
	}
	if x.Attempts > 0 {
		text += fmt.Sprintf(", attempts: %d", x.Attempts)
	}
	if x.Ahead > 0 {
		text += fmt.Sprintf(", %d pods are before it", x.Ahead)
	}
	if x.RetryAt != nil {
		text += fmt.Sprintf(", tried again in %s at the latest", max(x.RetryAt.Sub(now), 0).Round(time.Second))
	}
	return text
}

func record(w io.Writer, r *cycle.Record) {
	fmt.Fprintf(w, "Now:\t%d of %d nodes could take it\n", r.Feasible, r.Nodes)
	if len(r.Verdicts) > 0 {
		fmt.Fprint(w, "\nNODES\tREJECTED BY\tREASON\tPREEMPTION\n")
		for _, v := range r.Verdicts {
			preemption := "cannot help"
			if v.Removable {
				preemption = "could help"
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", v.Nodes, v.Plugin, strings.Join(v.Reasons, "; "), preemption)
		}
	}
	if len(r.Misses) > 0 {
		fmt.Fprint(w, "\nNEAREST NODE\tPLUGIN\tWHAT IS IN THE WAY\n")
		for i := range r.Misses {
			miss(w, &r.Misses[i])
		}
	}
	if len(r.Top) > 0 {
		fmt.Fprint(w, "\nBEST NODE\tTOTAL\tSCORES (raw, normalised, weighted)\n")
		for i := range r.Top {
			rated(w, &r.Top[i])
		}
	}
	if r.Asked != nil {
		asked(w, r)
	}
}

func miss(w io.Writer, m *cycle.Miss) {
	for i, a := range m.Advice {
		name := m.Node
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, a.Plugin, a.Detail)
	}
}

func rated(w io.Writer, r *cycle.Rated) {
	var parts []string
	for _, p := range r.Parts {
		parts = append(parts, fmt.Sprintf("%s %d, %d, %d", p.Plugin, p.Raw, p.Normalized, p.Weighted))
	}
	fmt.Fprintf(w, "%s\t%d\t%s\n", r.Node, r.Total, strings.Join(parts, "; "))
}

// asked tells about the node that was asked about.
func asked(w io.Writer, r *cycle.Record) {
	a := r.Asked
	fmt.Fprintf(w, "\nNode %s: ", a.Node)
	switch {
	case !a.Known:
		fmt.Fprint(w, "the scheduler knows of no such node\n")
	case a.Rated != nil:
		fmt.Fprintf(w, "could take the pod, number %d of %d\n", a.Rank, r.Feasible)
		rated(w, a.Rated)
	case a.Miss != nil:
		fmt.Fprint(w, "does not take the pod\n")
		miss(w, a.Miss)
	}
}
