package node

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// BenchmarkRealPodStart is the time from a pod's binding to its being Running in the API, with the image there.
func BenchmarkRealPodStart(b *testing.B) {
	r := newReal(b)
	r.start()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		name := fmt.Sprintf("p%d", i)
		r.create(fmt.Sprintf(`
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "app:1", args: [wait]}]
`, name))
		r.await(name, "running", inPhase(v1.PodRunning))
		b.StopTimer()
		r.remove(name, 1)
		b.StartTimer()
	}
}
