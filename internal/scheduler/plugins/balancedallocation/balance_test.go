package balancedallocation_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugins/balancedallocation"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
)

func TestScores(t *testing.T) {
	for _, test := range []struct {
		name      string
		resources []v1.ResourceName
		node, pod []string
		want      int64
	}{
		// Balance without the pod is 100 on an empty node, so (50 + with - 100) / 2 + 50.
		{"even", nil, []string{"cpu=4", "memory=4Gi"}, []string{"cpu=1", "memory=1Gi"}, 75},
		{"half of one", nil, []string{"cpu=4", "memory=4Gi"}, []string{"cpu=2"}, 62},
		{"one resource only", []v1.ResourceName{v1.ResourceCPU}, []string{"cpu=4"}, []string{"cpu=2"}, 75},
		{"no memory there", nil, []string{"cpu=4", "memory=0"}, []string{"cpu=2"}, 75},
		// Parts 0.5, 0.25, 1: mean 0.58, deviation 0.31.
		{"three", []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, "example.com/gpu"},
			[]string{"cpu=4", "memory=4Gi", "gpu=1"}, []string{"cpu=2", "memory=1Gi", "gpu=1"}, 59},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := ledger.New()
			l.SetNode(transcript.Node(t, "n", test.node...))
			s := l.Shapes.Compile(transcript.Pod(t, "p", test.pod...))
			score := (&balancedallocation.Plugin{Resources: test.resources}).NewScore(l, s)
			out := make([]int64, 1)
			score.Column(l.Live, 1, out)
			if got := score.Node(0); got != test.want || out[0] != got {
				t.Errorf("score is %d, column %d, want %d", got, out[0], test.want)
			}
		})
	}
}

func TestPodsWithoutRequestsAreNotBalanced(t *testing.T) {
	l := ledger.New()
	if (&balancedallocation.Plugin{}).NewScore(l, l.Shapes.Compile(transcript.Pod(t, "p"))) != nil {
		t.Error("a pod without requests is scored")
	}
}
