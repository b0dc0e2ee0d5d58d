package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Make makes a cgroup in every hierarchy, with those above it, and makes it usable: in version 1 the sets of CPUs and memory nodes are inherited,
// in version 2 the controllers are enabled on the way down.
func (h *Hierarchies) Make(path string) error {
	for _, dir := range h.dirs {
		if err := h.make(dir, path); err != nil {
			return fmt.Errorf("cgroup %s: %w", path, err)
		}
	}
	return nil
}

// races is how often a cgroup is begun anew because one above it vanished. Who stops another cluster removes "bayplan" if it is empty, which it is for
// the moment between the making of it and of what is below.
const races = 5

func (h *Hierarchies) make(hierarchy, path string) (err error) {
	for range races {
		if err = os.MkdirAll(filepath.Join(hierarchy, path), 0o755); err == nil {
			err = h.prepare(hierarchy, path)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

func (h *Hierarchies) prepare(hierarchy, path string) error {
	if h.unified {
		return enableControllers(hierarchy, path)
	}
	if h.dir("cpuset") == hierarchy {
		return inheritCpusets(hierarchy, path)
	}
	return nil
}

// inheritCpusets fills in the CPUs and memory nodes of new cpusets of version 1, which are empty and take no process before they are filled.
func inheritCpusets(hierarchy, path string) error {
	parent := hierarchy
	for part := range parts(path) {
		dir := filepath.Join(parent, part)
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			own, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if strings.TrimSpace(string(own)) != "" {
				continue
			}
			inherited, err := os.ReadFile(filepath.Join(parent, name))
			if err != nil {
				return err
			}
			if err := write(filepath.Join(dir, name), string(inherited)); err != nil {
				return err
			}
		}
		parent = dir
	}
	return nil
}

// controllers are those that pods need.
var controllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "pids"}

// enableControllers lets the cgroups above path hand those controllers down that they have themselves.
func enableControllers(hierarchy, path string) error {
	parent := hierarchy
	for part := range parts(path) {
		if err := enable(parent); err != nil {
			return err
		}
		parent = filepath.Join(parent, part)
	}
	return nil
}

func enable(dir string) error {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "cgroup.subtree_control")
	given, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var missing []string
	for _, name := range strings.Fields(string(has)) {
		if slices.Contains(controllers, name) && !slices.Contains(strings.Fields(string(given)), name) {
			missing = append(missing, "+"+name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	err = write(file, strings.Join(missing, " "))
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("%w: processes are in %s itself, which keeps its controllers from those below: move them to a cgroup of their own", err, dir)
	}
	return err
}

// parts are the names along a path.
func parts(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for part := range strings.SplitSeq(path, "/") {
			if part != "" && !yield(part) {
				return
			}
		}
	}
}
