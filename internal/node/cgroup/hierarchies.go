package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Root is where systems mount their cgroup hierarchies.
const Root = "/sys/fs/cgroup"

// Hierarchies are the cgroup hierarchies of the machine.
type Hierarchies struct {
	unified bool
	dirs    []string
}

// Open finds the hierarchies. Without any, the error says what is needed.
func Open() (*Hierarchies, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("cgroups: %w on %s: running containers needs Linux", errors.ErrUnsupported, runtime.GOOS)
	}
	return find(Root)
}

// find looks at what is mounted at and below root. Version 2 has a file that lists its controllers at the root of its mount.
func find(root string) (*Hierarchies, error) {
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		return &Hierarchies{unified: true, dirs: []string{root}}, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("cgroups: %w (mount cgroup2 at %s)", err, root)
	}
	h := &Hierarchies{}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink != 0 {
			continue // cpu -> cpu,cpuacct: the same hierarchy again
		}
		dir := filepath.Join(root, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			h.dirs = append(h.dirs, dir)
		}
	}
	if len(h.dirs) == 0 {
		return nil, fmt.Errorf("cgroups: nothing is mounted below %s (mount cgroup2 there)", root)
	}
	return h, nil
}

// Unified tells whether all controllers are in one hierarchy of version 2.
func (h *Hierarchies) Unified() bool { return h.unified }

// Dirs are the directories at which the hierarchies are mounted; with version 2 there is one.
func (h *Hierarchies) Dirs() []string { return slices.Clone(h.dirs) }

// dir is where the hierarchy of a controller is mounted; "" if it is nowhere.
func (h *Hierarchies) dir(controller string) string {
	if h.unified {
		return h.dirs[0]
	}
	for _, dir := range h.dirs {
		if slices.Contains(strings.Split(filepath.Base(dir), ","), controller) {
			return dir
		}
	}
	return ""
}

// write writes into a file of a cgroup. The file must be there: which files there are is how the kernel tells what it can do.
func write(path, value string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}
