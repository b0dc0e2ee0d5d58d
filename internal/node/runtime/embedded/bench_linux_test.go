package embedded

import (
	"fmt"
	"os"
	"strings"
	"sync"
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

// BenchmarkHundredPods starts 100 pods at once, and tells what they cost and how much memory of its own a helper has.
func BenchmarkHundredPods(b *testing.B) {
	const pods = 100
	for b.Loop() {
		f := newFixture(b)
		configs := make([]*cri.PodSandboxConfig, pods)
		for i := range configs {
			configs[i] = f.podConfig()
		}
		before, began := processCPU(b), time.Now()
		var starting sync.WaitGroup
		for _, config := range configs {
			starting.Go(func() { f.startPod(config) })
		}
		starting.Wait()
		b.ReportMetric(time.Since(began).Seconds(), "s-to-running")
		b.ReportMetric(float64(f.privateMemory())/pods/1e6, "private-MB/pod")
		f.removeAll()
		b.ReportMetric((processCPU(b) - before).Seconds(), "cpu-s")
		f.open()
	}
}

func (f *fixture) startPod(config *cri.PodSandboxConfig) {
	sandbox, err := f.r.RunPodSandbox(f.t.Context(), &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		f.t.Error(err)
		return
	}
	main := containerConfig("main", "wait")
	main.Linux.SecurityContext.Seccomp = &cri.SecurityProfile{}
	created, err := f.r.CreateContainer(f.t.Context(), &cri.CreateContainerRequest{PodSandboxId: sandbox.PodSandboxId, Config: main})
	if err != nil {
		f.t.Error(err)
		return
	}
	if _, err := f.r.StartContainer(f.t.Context(), &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		f.t.Error(err)
	}
}

// privateMemory adds up what the helpers have in memory that they share with nobody, in bytes.
func (f *fixture) privateMemory() int {
	total := 0
	for _, s := range f.r.sandboxes {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.helperPID))
		if err != nil {
			f.t.Error(err)
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			var kilobytes int
			if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Private_") {
				if _, err := fmt.Sscan(value, &kilobytes); err != nil {
					f.t.Error(err)
				}
				total += kilobytes << 10
			}
		}
	}
	return total
}
