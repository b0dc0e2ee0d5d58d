package network

import "testing"

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
