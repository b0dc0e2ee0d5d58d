package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// RemoveTree removes a cgroup with all below it, the deepest first, as far as no process is in them. What stays is an error; that nothing is there is none.
func (h *Hierarchies) RemoveTree(path string) error {
	if path = filepath.Join("/", path); path == "/" {
		return errors.New("cgroup /: the root of the hierarchies is not to be removed")
	}
	err := h.removeTrees(path)
	if errors.Is(err, syscall.EBUSY) && awaitEmpty(h.dirs[0], path) {
		err = h.removeTrees(path) // a process that has just ended takes a moment to leave
	}
	return err
}

func (h *Hierarchies) removeTrees(path string) error {
	var errs []error
	for _, dir := range h.dirs {
		errs = append(errs, removeTree(filepath.Join(dir, path)))
	}
	return errors.Join(errs...)
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.IsDir() {
			errs = append(errs, removeTree(filepath.Join(dir, entry.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	err = rmdir(dir)
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("cgroup %s: %w: processes are still in it (its cgroup.procs names them)", dir, syscall.EBUSY)
	}
	return err
}

func rmdir(dir string) error {
	if err := os.Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RemoveEmptyParents removes the cgroups above a path that have become empty. Others may use them, so that it is no error if they stay.
func (h *Hierarchies) RemoveEmptyParents(of string) {
	for parent := path.Dir(path.Join("/", of)); parent != "/"; parent = path.Dir(parent) {
		for _, dir := range h.dirs {
			_ = rmdir(filepath.Join(dir, parent))
		}
	}
}
