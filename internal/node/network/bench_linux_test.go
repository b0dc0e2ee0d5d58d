package network

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// BenchmarkStart makes the network of a cluster with one node and removes it: what a start of the cluster waits for.
func BenchmarkStart(b *testing.B) {
	config := testConfig(b)
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(b.Context(), config)
		if err != nil {
			b.Fatal(err)
		}
		addNode(b, f, "a", podsOfA)
		b.StopTimer()
		if err := f.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkPods attaches and detaches 100 pods, one after the other and as many at once as a runtime may; their namespaces are there before.
func BenchmarkPods(b *testing.B) {
	const count = 100
	a := addNode(b, openFabric(b, testConfig(b)), "a", podsOfA)
	var pods [count]*sandbox
	for i := range pods {
		pods[i] = newSandbox(b, fmt.Sprintf("pod-%d", i))
	}
	attach := func(s *sandbox) error {
		_, err := a.SetUp(b.Context(), s.id, s.ns.Path())
		return err
	}
	detach := func(s *sandbox) error { return a.TearDown(b.Context(), s.id, s.ns.Path()) }
	each := func(b *testing.B, workers int, do func(*sandbox) error) {
		var group errgroup.Group
		group.SetLimit(workers)
		for _, pod := range pods {
			group.Go(func() error { return do(pod) })
		}
		if err := group.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	for _, workers := range []int{1, 16} {
		for _, bench := range []struct {
			name         string
			timed, other func(*sandbox) error
		}{{"SetUp", attach, detach}, {"TearDown", detach, attach}} {
			b.Run(fmt.Sprintf("%s/workers=%d", bench.name, workers), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					each(b, 16, bench.other)
					b.StartTimer()
					each(b, workers, bench.timed)
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*count), "us/pod")
			})
		}
	}
}
