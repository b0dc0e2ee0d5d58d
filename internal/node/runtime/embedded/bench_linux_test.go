package embedded

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// processCPU is what this process and its children that were waited for have used.
func processCPU(b *testing.B) time.Duration {
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

// BenchmarkPodStart measures what a pod costs from RunPodSandbox until its container runs, and in CPU time until it is removed.
func BenchmarkPodStart(b *testing.B) {
	for name, profile := range map[string]*cri.SecurityProfile{
		"seccomp=RuntimeDefault": {ProfileType: cri.SecurityProfile_RuntimeDefault},
		"seccomp=Unconfined":     {ProfileType: cri.SecurityProfile_Unconfined},
	} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b)
			b.ReportAllocs()
			before := processCPU(b)
			for b.Loop() {
				pod := f.pod()
				config := containerConfig("main", "wait")
				config.Linux.SecurityContext.Seccomp = profile
				f.run(pod, config)
				b.StopTimer()
				if _, err := f.r.RemovePodSandbox(b.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(processCPU(b)-before)/float64(b.N)/1e6, "cpu-ms/pod")
		})
	}
}
