package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
)

// The cgroups of the QoS classes below the node's. Guaranteed pods are in that of the node itself.
const (
	Burstable  = "burstable"
	BestEffort = "besteffort"
)

// podPrefix is what names of pods' cgroups begin with, before the UID.
const podPrefix = "pod"

// Node is the cgroup tree of one node. Its methods may be called by many goroutines at once.
type Node struct {
	hierarchies *Hierarchies
	path        string

	mu sync.Mutex
	// lacking are the files that the machine was found to lack, so that each is told once.
	lacking map[string]bool
	shares  map[string]int64 // of the classes, as last written
}

// NewNode is for the node whose cgroup is path, relative to the root of the hierarchies. Nothing is made yet.
func NewNode(hierarchies *Hierarchies, path string) *Node {
	return &Node{hierarchies: hierarchies, path: filepath.Join("/", path), lacking: map[string]bool{}, shares: map[string]int64{}}
}

// EnsureNode makes the cgroups of the node and of its classes. shares is the node's CPU share, as its allocatable CPU. All that runs on the node
// together gets no more memory than memory bytes; if it has more already, because the node was made smaller, that is told and the rest is done.
func (n *Node) EnsureNode(ctx context.Context, shares, memory int64) error {
	for _, class := range []string{Burstable, BestEffort} {
		if err := n.hierarchies.Make(path.Join(n.path, class)); err != nil {
			return err
		}
		if err := n.SetClass(ctx, class, minShares); err != nil {
			return err
		}
	}
	if err := n.apply(ctx, n.path, n.hierarchies.share(shares)); err != nil {
		return err
	}
	if err := n.apply(ctx, n.path, n.hierarchies.memory(memory)); err != nil {
		klog.FromContext(ctx).Error(err, "The node's pods cannot be kept to the node's memory")
	}
	return nil
}

// memory is the setting of a memory limit alone.
func (h *Hierarchies) memory(bytes int64) []setting {
	var out []setting
	for _, s := range h.settings(&cri.LinuxContainerResources{MemoryLimitInBytes: bytes}) {
		if s.controller == "memory" {
			out = append(out, s)
		}
	}
	return out
}

// SetClass sets the CPU share of a class: for burstable what its pods ask for in all, for besteffort the least.
func (n *Node) SetClass(ctx context.Context, class string, shares int64) error {
	shares = min(maxShares, max(minShares, shares))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.shares[class] == shares {
		return nil
	}
	if err := n.applyLocked(ctx, path.Join(n.path, class), n.hierarchies.share(shares)); err != nil {
		return err
	}
	n.shares[class] = shares
	return nil
}

// share is the setting of a CPU share alone.
func (h *Hierarchies) share(shares int64) []setting {
	return h.settings(&cri.LinuxContainerResources{CpuShares: shares})[:1]
}

// EnsurePod makes a pod's cgroup, or brings the one that is there to the given values; what is zero is not limited. parent is its path, that by which
// the runtime is told where the containers' cgroups belong.
func (n *Node) EnsurePod(ctx context.Context, parent string, r *cri.LinuxContainerResources) error {
	parent = path.Join("/", parent)
	if !strings.HasPrefix(parent, n.path+"/") {
		return fmt.Errorf("cgroup %s is not below that of the node, %s", parent, n.path)
	}
	if err := n.hierarchies.Make(parent); err != nil {
		return err
	}
	settings := n.hierarchies.settings(r)
	if dir := n.hierarchies.dir("hugetlb"); dir != "" {
		settings = append(settings, n.hierarchies.hugepages(filepath.Join(dir, parent), r.HugepageLimits)...)
	}
	return n.apply(ctx, parent, settings)
}

func (n *Node) apply(ctx context.Context, cgroup string, settings []setting) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.applyLocked(ctx, cgroup, settings)
}

// applyLocked writes the settings one after the other. What the machine cannot limit is left out, and told once.
func (n *Node) applyLocked(ctx context.Context, cgroup string, settings []setting) error {
	for _, s := range settings {
		err := fs.ErrNotExist
		if dir := n.hierarchies.dir(s.controller); dir != "" {
			err = write(filepath.Join(dir, cgroup, s.file), s.value)
		}
		if errors.Is(err, fs.ErrNotExist) && n.exists(cgroup) {
			if s.needed && !n.lacking[s.file] {
				n.lacking[s.file] = true
				klog.FromContext(ctx).Info("This machine's cgroups don't have a limit that pods ask for: they run without it", "file", s.file, "controller", s.controller)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("cgroup %s: %s cannot be %s: %w", cgroup, s.file, s.value, err)
		}
	}
	return nil
}

// exists tells a file that the kernel lacks from a cgroup that is gone.
func (n *Node) exists(cgroup string) bool {
	_, err := os.Stat(filepath.Join(n.hierarchies.dirs[0], cgroup))
	return err == nil
}

// places are the cgroups in which those of pods are.
func (n *Node) places() []string {
	return []string{n.path, path.Join(n.path, Burstable), path.Join(n.path, BestEffort)}
}

// RemovePod removes the cgroup of a pod, whatever its class. It is an error if processes are in it.
func (n *Node) RemovePod(_ context.Context, uid string) error {
	if uid == "" || strings.Contains(uid, "/") {
		return fmt.Errorf("cgroup of a pod: %q is no UID", uid)
	}
	var errs []error
	for _, place := range n.places() {
		errs = append(errs, n.hierarchies.RemoveTree(path.Join(place, podPrefix+uid)))
	}
	return errors.Join(errs...)
}

// Retain removes the cgroups of pods that are not to be kept: what RemovePod was not called for, because of a crash. It is for the start, before new
// ones are made. Those in which processes are stay, and are told.
func (n *Node) Retain(ctx context.Context, keep func(uid string) bool) {
	for _, dir := range n.hierarchies.dirs {
		for _, place := range n.places() {
			entries, _ := os.ReadDir(filepath.Join(dir, place)) // a class may not be there yet
			for _, entry := range entries {
				uid, isPod := strings.CutPrefix(entry.Name(), podPrefix)
				if !isPod || !entry.IsDir() || keep(uid) {
					continue
				}
				if err := removeTree(filepath.Join(dir, place, entry.Name())); err != nil {
					klog.FromContext(ctx).Error(err, "Cannot remove the cgroup of a former pod", "podUID", uid)
				}
			}
		}
	}
}

// Remove removes the node's whole tree, and the cgroups above it that have become empty.
func (n *Node) Remove() error {
	if err := n.hierarchies.RemoveTree(n.path); err != nil {
		return err
	}
	n.hierarchies.RemoveEmptyParents(n.path)
	return nil
}
