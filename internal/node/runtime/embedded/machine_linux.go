package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is what this machine can do: containers ask for things in general, and some machines lack some.
type machine struct {
	// unified is set when all controllers are in the cgroup v2 hierarchy.
	unified bool
	// hierarchies are the directories at which cgroup hierarchies are mounted; with v2 there is one.
	hierarchies []string
	// bounding are the capabilities that can be given to a container.
	bounding []string
	// oomScoreFloor is the lowest oom_score_adj that can be set: without CAP_SYS_RESOURCE, the one that this process inherited.
	oomScoreFloor int
}

// CgroupRoot is where the system mounts its cgroup hierarchies.
const cgroupRoot = "/sys/fs/cgroup"

const cgroup2Magic = 0x63677270

func probe() (*machine, error) {
	m := &machine{oomScoreFloor: -1000}
	if err := m.findHierarchies(); err != nil {
		return nil, err
	}
	var err error
	if m.bounding, err = boundingSet(); err != nil {
		return nil, err
	}
	if !slices.Contains(m.bounding, "CAP_SYS_RESOURCE") {
		text, err := os.ReadFile("/proc/self/oom_score_adj")
		if err != nil {
			return nil, err
		}
		if m.oomScoreFloor, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			return nil, fmt.Errorf("/proc/self/oom_score_adj: %w", err)
		}
	}
	return m, nil
}

func (m *machine) findHierarchies() error {
	var root unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &root); err != nil {
		return fmt.Errorf("cgroups: %s: %w (mount cgroup2 there)", cgroupRoot, err)
	}
	if root.Type == cgroup2Magic {
		m.unified, m.hierarchies = true, []string{cgroupRoot}
		return nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return fmt.Errorf("cgroups: %w", err)
	}
	for _, entry := range entries {
		dir := filepath.Join(cgroupRoot, entry.Name())
		if entry.Type()&fs.ModeSymlink != 0 {
			continue // cpu -> cpu,cpuacct: the same hierarchy again
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			m.hierarchies = append(m.hierarchies, dir)
		}
	}
	if len(m.hierarchies) == 0 {
		return fmt.Errorf("cgroups: nothing is mounted below %s (mount cgroup2 there)", cgroupRoot)
	}
	return nil
}

// makeHelperCgroup makes the cgroup in which helpers live.
func (m *machine) makeHelperCgroup(path string) error {
	for _, hierarchy := range m.hierarchies {
		dir := filepath.Join(hierarchy, path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
		if filepath.Base(hierarchy) == "cpuset" {
			if err := inheritCpusets(hierarchy, path); err != nil {
				return fmt.Errorf("cgroup: %w", err)
			}
		}
	}
	return nil
}

// inheritCpusets fills in the CPUs and memory nodes of new cpusets of v1, which are empty and take no process before they are filled.
func inheritCpusets(hierarchy, path string) error {
	parent := hierarchy
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
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
			if err := os.WriteFile(filepath.Join(dir, name), inherited, 0); err != nil {
				return err
			}
		}
		parent = dir
	}
	return nil
}

// procsFiles are the files that a process writes itself to, to be in a cgroup in every hierarchy.
func (m *machine) procsFiles(path string) []string {
	files := make([]string, len(m.hierarchies))
	for i, hierarchy := range m.hierarchies {
		files[i] = filepath.Join(hierarchy, path, "cgroup.procs")
	}
	return files
}

// removeCgroups removes a cgroup and those below it, as far as they are empty.
func (m *machine) removeCgroups(path string) {
	for _, hierarchy := range m.hierarchies {
		removeEmpty(filepath.Join(hierarchy, path))
	}
}

func removeEmpty(dir string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	for _, entry := range entries {
		if entry.IsDir() {
			removeEmpty(filepath.Join(dir, entry.Name()))
		}
	}
	_ = unix.Rmdir(dir) // refused while a process is in it
}

// clampOOMScore gives the nearest score that can be set.
func (m *machine) clampOOMScore(wanted int) int { return max(wanted, m.oomScoreFloor) }

// hasController tells whether the kernel limits what the controller of that name is for.
func (m *machine) hasController(name string) bool {
	if m.unified {
		text, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
		return err == nil && slices.Contains(strings.Fields(string(text)), name)
	}
	return slices.ContainsFunc(m.hierarchies, func(dir string) bool {
		return slices.Contains(strings.Split(filepath.Base(dir), ","), name)
	})
}

// hasSwapLimit tells whether swap is accounted, which v1 does only if the kernel was told to.
func (m *machine) hasSwapLimit() bool {
	if m.unified {
		return true
	}
	_, err := os.Stat(filepath.Join(cgroupRoot, "memory", "memory.memsw.limit_in_bytes"))
	return err == nil
}
