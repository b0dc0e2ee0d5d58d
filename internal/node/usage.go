package node

import (
	"context"
	"os"
	"path/filepath"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/eviction"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// podUsage is what a pod that has not ended uses.
type podUsage struct {
	pod *v1.Pod
	// memory and written are by container: bytes that can't be dropped, and bytes in its writable layer.
	memory, written map[string]int64
	// disk is complete for pods whose disk usage has limits, and empty for others, since measuring it means to walk through it.
	disk eviction.Disk
}

// measure asks the runtime what the pods use. A runtime that doesn't know leaves memory to the kernel's OOM killer.
func (p *pods) measure(ctx context.Context) ([]podUsage, error) {
	resp, err := p.node.cfg.Runtime.ListContainerStats(ctx, &cri.ListContainerStatsRequest{})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return nil, err
	}
	memory, written := map[types.UID]map[string]int64{}, map[types.UID]map[string]int64{}
	for _, s := range resp.GetStats() {
		labels := s.GetAttributes().GetLabels()
		uid, name := types.UID(labels[translate.LabelPodUID]), labels[translate.LabelContainerName]
		add(memory, uid, name, s.GetMemory().GetWorkingSetBytes().GetValue())
		add(written, uid, name, s.GetWritableLayer().GetUsedBytes().GetValue())
	}
	var out []podUsage
	for _, pod := range p.list() {
		if p.finished(pod.UID) {
			continue
		}
		u := podUsage{pod: pod, memory: memory[pod.UID], written: written[pod.UID]}
		if eviction.Bounded(pod) {
			u.disk = p.diskOf(u)
		}
		out = append(out, u)
	}
	return out, nil
}

func add(to map[types.UID]map[string]int64, uid types.UID, name string, n uint64) {
	if to[uid] == nil {
		to[uid] = map[string]int64{}
	}
	to[uid][name] += int64(n)
}

func (p *pods) finished(uid types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.workers[uid]
	return w == nil || w.Finished()
}

// diskOf measures what the pod takes of the disk: writable layers, logs, and emptyDir volumes.
func (p *pods) diskOf(u podUsage) eviction.Disk {
	d := eviction.Disk{Containers: map[string]int64{}, Volumes: map[string]int64{}}
	logs := translate.LogDir(p.node.cfg.RootDir, u.pod)
	for _, list := range [][]v1.Container{u.pod.Spec.InitContainers, u.pod.Spec.Containers} {
		for i := range list {
			name := list[i].Name
			d.Containers[name] = u.written[name] + sizeOfFiles(filepath.Join(logs, name))
		}
	}
	for i := range u.pod.Spec.Volumes {
		if v := &u.pod.Spec.Volumes[i]; eviction.OnDisk(v) {
			d.Volumes[v.Name] = p.node.volumes.Used(u.pod, v)
		}
	}
	return d
}

// sizeOfFiles is the size of the files directly in a directory.
func sizeOfFiles(dir string) int64 {
	entries, _ := os.ReadDir(dir) // nothing was logged yet
	sum := int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// processes asks the runtime how many processes the pods have.
func (p *pods) processes(ctx context.Context) ([]eviction.Usage, error) {
	resp, err := p.node.cfg.Runtime.ListPodSandboxStats(ctx, &cri.ListPodSandboxStatsRequest{})
	if err != nil {
		return nil, err
	}
	count := map[types.UID]int64{}
	for _, s := range resp.Stats {
		count[types.UID(s.GetAttributes().GetMetadata().GetUid())] += int64(s.GetLinux().GetProcess().GetProcessCount().GetValue())
	}
	var out []eviction.Usage
	for _, pod := range p.list() {
		if !p.finished(pod.UID) {
			out = append(out, eviction.Usage{Pod: pod, Shared: count[pod.UID]})
		}
	}
	return out, nil
}
