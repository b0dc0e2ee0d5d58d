package podtopologyspread_test

import (
	"fmt"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/podtopologyspread"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	"k8s.io/apimachinery/pkg/types"
)

// TestNodeSaysWhatColumnSays, for filter and score, while pods come and go.
func TestNodeSaysWhatColumnSays(t *testing.T) {
	l := ledger.New()
	for i := range 6 {
		words := []string{fmt.Sprintf("labels=zone=%c", 'a'+i%2)}
		if i == 5 {
			words = nil
		}
		l.SetNode(transcript.Node(t, fmt.Sprint("n", i), words...))
	}
	pod := transcript.Pod(t, "p", "labels=app=x", "spread=zone:1:hard:app=x", "spread=kubernetes.io/hostname:1:soft:app=x", "spread=zone:2:soft:app=x")
	s := l.Shapes.Compile(pod)
	p := podtopologyspread.New()
	f, score := p.NewFilter(l, s), p.NewScore(l, s)
	followers := []plugin.Follower{f.(plugin.Follower), score.(plugin.Follower)}
	for _, each := range followers {
		each.Build()
	}
	for i, node := range []int{0, 1, 1, 3, 0, 2, 4, 5, 0} {
		position := l.Position()
		l.AddPod(&ledger.Pod{UID: types.UID(fmt.Sprint("x", i)), Shape: s}, fmt.Sprint("n", node))
		l.Since(position, func(c *ledger.Change) {
			for _, each := range followers {
				if !each.Apply(c) {
					t.Fatal("a pod cannot be counted")
				}
			}
		})
		pass := append(ledger.Bitmap(nil), l.Live...)
		codes := map[int32]plugin.Code{}
		f.Column(pass, func(slot int32, code plugin.Code) { codes[slot] = code })
		all := append(ledger.Bitmap(nil), l.Live...)
		score.(plugin.Preparer).Prepare(all, 6)
		raw := make([]int64, 6)
		score.Column(all, 1, raw)
		for slot := range int32(6) {
			if f.Node(slot) != codes[slot] || pass.Has(slot) != (codes[slot] == plugin.Pass) || score.Node(slot) != raw[slot] {
				t.Errorf("after pod %d, node n%d: filter %d and %d, score %d and %d", i, slot, f.Node(slot), codes[slot], score.Node(slot), raw[slot])
			}
		}
	}
}
