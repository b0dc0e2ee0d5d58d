package noderesourcesfit_test

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/noderesourcesfit"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func weights(pairs ...any) (out []noderesourcesfit.Weight) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, noderesourcesfit.Weight{Name: v1.ResourceName(pairs[i].(string)), Weight: int64(pairs[i+1].(int))})
	}
	return out
}

// score rates one node of the words for a pod of the words.
func score(t *testing.T, strategy noderesourcesfit.Strategy, node, pod []string) int64 {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n", node...))
	s := l.Shapes.Compile(transcript.Pod(t, "p", pod...))
	p := &noderesourcesfit.Plugin{Strategy: strategy}
	return p.NewScore(l, s).Node(0)
}

func TestStrategies(t *testing.T) {
	line := []noderesourcesfit.Point{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}
	bins := []noderesourcesfit.Point{{Utilization: 0, Score: 0}, {Utilization: 50, Score: 8}, {Utilization: 100, Score: 4}}
	for _, test := range []struct {
		name      string
		strategy  noderesourcesfit.Strategy
		node, pod []string
		want      int64
	}{
		{"least, a quarter of both", noderesourcesfit.Strategy{}, []string{"cpu=4", "memory=4Gi"}, []string{"cpu=1", "memory=1Gi"}, 75},
		{"least, weights 3 to 1", noderesourcesfit.Strategy{Resources: weights("cpu", 3, "memory", 1)},
			[]string{"cpu=4", "memory=4Gi"}, []string{"cpu=2", "memory=1Gi"}, (3*50 + 75) / 4},
		{"least, more than there is", noderesourcesfit.Strategy{}, []string{"cpu=1", "memory=4Gi"}, []string{"cpu=2", "memory=1Gi"}, (0 + 75) / 2},
		{"least, no request counts as 100m and 200Mi", noderesourcesfit.Strategy{}, []string{"cpu=1", "memory=2000Mi"}, nil, 90},
		{"least, a node without memory", noderesourcesfit.Strategy{}, []string{"cpu=4", "memory=0"}, []string{"cpu=1"}, 75},
		{"most", noderesourcesfit.Strategy{Type: noderesourcesfit.MostAllocated}, []string{"cpu=4", "memory=4Gi"}, []string{"cpu=1", "memory=3Gi"}, 50},
		{"most, more than there is", noderesourcesfit.Strategy{Type: noderesourcesfit.MostAllocated}, []string{"cpu=1", "memory=4Gi"},
			[]string{"cpu=2", "memory=1Gi"}, (100 + 25) / 2},
		{"most, an extended resource", noderesourcesfit.Strategy{Type: noderesourcesfit.MostAllocated, Resources: weights("cpu", 1, "example.com/gpu", 3)},
			[]string{"cpu=4", "gpu=4"}, []string{"cpu=1", "gpu=3"}, (25 + 3*75) / 4},
		{"most, an extended resource not asked for", noderesourcesfit.Strategy{Type: noderesourcesfit.MostAllocated, Resources: weights("cpu", 1, "example.com/gpu", 3)},
			[]string{"cpu=4", "gpu=4"}, []string{"cpu=1"}, 25},
		{"ratio, a line", noderesourcesfit.Strategy{Type: noderesourcesfit.RequestedToCapacityRatio, Points: line},
			[]string{"cpu=4", "memory=4Gi"}, []string{"cpu=1", "memory=2Gi"}, 38},
		{"ratio, a peak", noderesourcesfit.Strategy{Type: noderesourcesfit.RequestedToCapacityRatio, Points: bins, Resources: weights("cpu", 1)},
			[]string{"cpu=4"}, []string{"cpu=3"}, 60},
		{"ratio, more than there is", noderesourcesfit.Strategy{Type: noderesourcesfit.RequestedToCapacityRatio, Points: bins, Resources: weights("cpu", 1)},
			[]string{"cpu=2"}, []string{"cpu=3"}, 40},
		{"ratio, what scores 0 has no weight", noderesourcesfit.Strategy{Type: noderesourcesfit.RequestedToCapacityRatio, Points: line},
			[]string{"cpu=4", "memory=4Gi"}, []string{"cpu=0", "memory=2Gi"}, 50},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := score(t, test.strategy, test.node, test.pod); got != test.want {
				t.Errorf("score is %d, want %d", got, test.want)
			}
		})
	}
}

// TestLeastIsExact compares the pass over columns, which divides in floating point, with division of whole numbers.
func TestLeastIsExact(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := ledger.New()
		amount := rapid.Int64Range(0, 1<<(1+rapid.IntRange(1, 50).Draw(r, "bits")))
		cpu, memory := amount.Draw(r, "cpu"), amount.Draw(r, "memory")
		node := transcript.Node(t, "n", fmt.Sprintf("cpu=%dm", min(cpu, 1<<53)), fmt.Sprintf("memory=%d", memory))
		l.SetNode(node)
		askCPU, askMemory := rapid.Int64Range(0, cpu).Draw(r, "ask cpu"), rapid.Int64Range(0, memory).Draw(r, "ask memory")
		s := l.Shapes.Compile(transcript.Pod(t, "p", fmt.Sprintf("cpu=%dm", askCPU), fmt.Sprintf("memory=%d", askMemory)))
		rated := (&noderesourcesfit.Plugin{}).NewScore(l, s)
		out := make([]int64, 1)
		rated.Column(l.Live, 1, out)
		if want := exact(askCPU, cpu, askMemory, memory); out[0] != want || rated.Node(0) != want {
			r.Fatalf("cpu %d of %d, memory %d of %d: column %d, node %d, want %d", askCPU, cpu, askMemory, memory, out[0], rated.Node(0), want)
		}
	})
}

func exact(cpu, allCPU, memory, allMemory int64) int64 {
	var sum, weights int64
	for _, pair := range [][2]int64{{cpu, allCPU}, {memory, allMemory}} {
		if pair[1] == 0 {
			continue
		}
		hi, lo := bits.Mul64(uint64(pair[1]-pair[0]), plugin.MaxScore)
		part, _ := bits.Div64(hi, lo, uint64(pair[1]))
		sum, weights = sum+int64(part), weights+1
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// TestIgnoredResources: what the configuration ignores is not filtered by; CPU and memory never are.
func TestIgnoredResources(t *testing.T) {
	for _, test := range []struct {
		plugin noderesourcesfit.Plugin
		want   bool
	}{
		{noderesourcesfit.Plugin{}, false},
		{noderesourcesfit.Plugin{IgnoredResources: []string{"example.com/gpu"}}, true},
		{noderesourcesfit.Plugin{IgnoredGroups: []string{"example.com"}}, true},
		{noderesourcesfit.Plugin{IgnoredResources: []string{"example.com/other"}, IgnoredGroups: []string{"example.org"}}, false},
	} {
		l := ledger.New()
		l.SetNode(transcript.Node(t, "n"))
		s := l.Shapes.Compile(transcript.Pod(t, "p", "gpu=1"))
		if got := test.plugin.NewFilter(l, s).Node(0) == plugin.Pass; got != test.want {
			t.Errorf("%+v: passes %v, want %v", test.plugin, got, test.want)
		}
	}
}
