// Package tainttoleration is the plugin TaintToleration: a node with a NoSchedule or NoExecute taint takes only pods that
// tolerate it, and a node is the worse the more of its PreferNoSchedule taints a pod does not tolerate.
//
// Nodes share few different sets of taints, so each set is judged once per shape of pod and nodes look the answer up.
package tainttoleration

import (
	"math/bits"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// Name is the plugin's name in configurations.
const Name = "TaintToleration"

// Reason is what tainted nodes are rejected with.
const Reason = "node(s) had untolerated taint(s)"

// Plugin filters and scores by taints.
type Plugin struct{}

// Name implements plugin.Plugin.
func (Plugin) Name() string { return Name }

// NewFilter implements plugin.FilterPlugin.
func (Plugin) NewFilter(l *ledger.Ledger, s *shape.Shape) plugin.Filter {
	return &filter{tolerations: s.Tolerations, table: table{ledger: l, judge: func(taints []v1.Taint) int64 {
		if Untolerated(taints, s.Tolerations) != nil {
			return 1
		}
		return 0
	}}}
}

// NewScore implements plugin.ScorePlugin.
func (Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	tolerations := preferring(s.Tolerations)
	return &score{table: table{ledger: l, judge: func(taints []v1.Taint) int64 {
		return intolerable(taints, tolerations)
	}}}
}

// table remembers the answer for each set of taints.
type table struct {
	ledger  *ledger.Ledger
	judge   func([]v1.Taint) int64
	answers []int64
}

// all returns the answers for all sets seen so far.
func (t *table) all() []int64 {
	for set := len(t.answers); set < t.ledger.TaintSets(); set++ {
		t.answers = append(t.answers, t.judge(t.ledger.Taints(int32(set))))
	}
	return t.answers
}

func (t *table) of(slot int32) int64 { return t.all()[t.ledger.TaintSet[slot]] }

type filter struct {
	table
	tolerations []v1.Toleration
}

func (f *filter) Node(slot int32) plugin.Code { return plugin.Code(f.of(slot)) }

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	answers, sets := f.all(), f.ledger.TaintSet
	for i, word := range pass {
		base := int32(i << 6)
		for ; word != 0; word &= word - 1 {
			slot := base + int32(bits.TrailingZeros64(word))
			if answers[sets[slot]] != 0 {
				pass.Clear(slot)
				fail(slot, 1)
			}
		}
	}
}

func (f *filter) Explain(plugin.Code) plugin.Status {
	return plugin.Reject(Name, plugin.Unresolvable, Reason)
}

// Advise implements plugin.Advisor: which taints. The distance is their number.
func (f *filter) Advise(slot int32) plugin.Advice {
	var names []string
	for _, taint := range f.ledger.Taints(f.ledger.TaintSet[slot]) {
		if Untolerated([]v1.Taint{taint}, f.tolerations) != nil {
			names = append(names, taint.ToString())
		}
	}
	return plugin.Advice{Detail: "needs a toleration of " + strings.Join(names, " and "), Distance: float64(len(names))}
}

type score struct{ table }

func (s *score) Node(slot int32) int64 { return s.of(slot) }

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	answers, sets := s.all(), s.ledger.TaintSet
	for i, word := range nodes {
		base := int32(i << 6)
		for ; word != 0; word &= word - 1 {
			slot := base + int32(bits.TrailingZeros64(word))
			out[slot] += weight * answers[sets[slot]]
		}
	}
}

func (s *score) Normalization() plugin.Normalization { return plugin.ByMaxReversed }

// Flat implements plugin.Flatness: few clusters have PreferNoSchedule taints at all.
func (s *score) Flat() bool {
	for _, answer := range s.all() {
		if answer != 0 {
			return false
		}
	}
	return true
}

// Untolerated returns the first NoSchedule or NoExecute taint that no toleration covers, nil if there is none.
func Untolerated(taints []v1.Taint, tolerations []v1.Toleration) *v1.Taint {
	for i := range taints {
		effect := taints[i].Effect
		if effect != v1.TaintEffectNoSchedule && effect != v1.TaintEffectNoExecute {
			continue
		}
		if !Tolerated(tolerations, &taints[i]) {
			return &taints[i]
		}
	}
	return nil
}

// Tolerated reports whether one of the tolerations covers the taint.
func Tolerated(tolerations []v1.Toleration, taint *v1.Taint) bool {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, taint, false) {
			return true
		}
	}
	return false
}

// preferring keeps the tolerations that can cover a PreferNoSchedule taint.
func preferring(tolerations []v1.Toleration) []v1.Toleration {
	var out []v1.Toleration
	for i := range tolerations {
		if e := tolerations[i].Effect; e == "" || e == v1.TaintEffectPreferNoSchedule {
			out = append(out, tolerations[i])
		}
	}
	return out
}

func intolerable(taints []v1.Taint, tolerations []v1.Toleration) int64 {
	var n int64
	for i := range taints {
		if taints[i].Effect == v1.TaintEffectPreferNoSchedule && !Tolerated(tolerations, &taints[i]) {
			n++
		}
	}
	return n
}
