package nodeaffinity_test

import (
	"fmt"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/nodeaffinity"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
)

func TestRequirements(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n", "labels=disk=ssd,cores=8,odd=x"))
	for _, test := range []struct {
		key      string
		operator v1.NodeSelectorOperator
		values   []string
		want     bool
	}{
		{"disk", v1.NodeSelectorOpIn, []string{"hdd", "ssd"}, true},
		{"disk", v1.NodeSelectorOpIn, []string{"hdd"}, false},
		{"none", v1.NodeSelectorOpIn, []string{"ssd"}, false},
		{"disk", v1.NodeSelectorOpIn, nil, false},
		{"disk", v1.NodeSelectorOpNotIn, []string{"hdd"}, true},
		{"disk", v1.NodeSelectorOpNotIn, []string{"ssd"}, false},
		{"none", v1.NodeSelectorOpNotIn, []string{"ssd"}, true},
		{"disk", v1.NodeSelectorOpExists, nil, true},
		{"none", v1.NodeSelectorOpExists, nil, false},
		{"none", v1.NodeSelectorOpDoesNotExist, nil, true},
		{"disk", v1.NodeSelectorOpDoesNotExist, nil, false},
		{"cores", v1.NodeSelectorOpGt, []string{"7"}, true},
		{"cores", v1.NodeSelectorOpGt, []string{"8"}, false},
		{"cores", v1.NodeSelectorOpLt, []string{"9"}, true},
		{"cores", v1.NodeSelectorOpLt, []string{"8"}, false},
		{"odd", v1.NodeSelectorOpGt, []string{"1"}, false},
		{"none", v1.NodeSelectorOpLt, []string{"1"}, false},
		{"cores", v1.NodeSelectorOpGt, []string{"many"}, false},
		{"disk", "Like", []string{"s*"}, false},
	} {
		selector, _ := shape.CompileNodeAffinity(&v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: test.key, Operator: test.operator, Values: test.values}},
			}}},
		})
		one, all := nodeaffinity.Matches(l, selector, 0), nodeaffinity.Select(l, selector).Has(0)
		if one != test.want || all != test.want {
			t.Errorf("%s %s %v: node %v, column %v, want %v", test.key, test.operator, test.values, one, all, test.want)
		}
	}
}

func TestAddedAffinity(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n1", "labels=pool=a"))
	l.SetNode(transcript.Node(t, "n2", "labels=pool=b,disk=ssd"))
	added, preferred := shape.CompileNodeAffinity(transcript.Pod(t, "p", "require=pool=b", "prefer=disk=ssd:7").Spec.Affinity.NodeAffinity)
	p := &nodeaffinity.Plugin{Added: added, AddedPreferred: preferred}
	s := l.Shapes.Compile(transcript.Pod(t, "q"))
	f := p.NewFilter(l, s)
	if reason := f.Explain(f.Node(0)).Reasons[0]; reason != nodeaffinity.ReasonEnforced {
		t.Errorf("node n1 is rejected with %q", reason)
	}
	if f.Node(1) != plugin.Pass || p.NewScore(l, s).Node(1) != 7 {
		t.Errorf("node n2: code %d, score %d; want pass and 7", f.Node(1), p.NewScore(l, s).Node(1))
	}
}

func TestNamedNodes(t *testing.T) {
	named := func(terms ...string) *v1.NodeAffinity {
		a := &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{}}
		for _, name := range terms {
			term := v1.NodeSelectorTerm{}
			if name != "" {
				term.MatchFields = []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{name}}}
			}
			list := &a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			*list = append(*list, term)
		}
		return a
	}
	for _, test := range []struct {
		affinity *v1.NodeAffinity
		want     string
	}{
		{named("b", "a", "b"), "[a b] true"}, {named("a", ""), "[] false"}, {named(), "[] false"}, {&v1.NodeAffinity{}, "[] false"},
	} {
		selector, _ := shape.CompileNodeAffinity(test.affinity)
		names, ok := selector.Names()
		if got := fmt.Sprint(names, ok); got != test.want {
			t.Errorf("names are %s, want %s", got, test.want)
		}
	}
}
