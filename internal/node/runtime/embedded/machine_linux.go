package embedded

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bayplan/bayplan/internal/node/cgroup"
	"golang.org/x/sys/unix"
)

// machine is what this machine can do: containers ask for things in general, and some machines lack some.
type machine struct {
	cgroups *cgroup.Hierarchies
	// unified is set when all controllers are in the cgroup v2 hierarchy.
	unified bool
	// hierarchies are the directories at which cgroup hierarchies are mounted; with v2 there is one.
	hierarchies []string
	// bounding are the capabilities that can be given to a container.
	bounding []string
	// oomScoreFloor is the lowest oom_score_adj that can be set: without CAP_SYS_RESOURCE, the one that this process inherited.
	oomScoreFloor int
}

// cgroupRoot is where the system mounts its cgroup hierarchies.
const cgroupRoot = cgroup.Root

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

func (m *machine) findHierarchies() (err error) {
	if m.cgroups, err = cgroup.Open(); err != nil {
		return err
	}
	m.unified, m.hierarchies = m.cgroups.Unified(), m.cgroups.Dirs()
	return nil
}

// makeHelperCgroup makes the cgroup in which helpers live.
func (m *machine) makeHelperCgroup(path string) error { return m.cgroups.Make(path) }

// procsFiles are the files that a process writes itself to, to be in a cgroup in every hierarchy.
func (m *machine) procsFiles(path string) []string {
	files := make([]string, len(m.hierarchies))
	for i, hierarchy := range m.hierarchies {
		files[i] = filepath.Join(hierarchy, path, "cgroup.procs")
	}
	return files
}

// removeCgroups removes a cgroup and those below it, as far as they are empty.
func (m *machine) removeCgroups(path string) { _ = m.cgroups.RemoveTree(path) }

// kill ends every process in a cgroup and those below it. It is for pods that no helper can hold any more.
func (m *machine) kill(path string) {
	for range killRounds {
		if !killTree(filepath.Join(m.hierarchies[0], path)) {
			return
		}
	}
}

// killRounds is how often a cgroup is searched for processes: one may fork while its group is being killed.
const killRounds = 10

// killTree kills what it finds, and tells whether it found anything.
func killTree(dir string) bool {
	found := false
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "cgroup.procs" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil // gone meanwhile
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				found = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		return nil
	})
	return found
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
