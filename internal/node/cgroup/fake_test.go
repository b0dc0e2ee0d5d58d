package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a directory tree with files as the kernel would make them.
type fake struct {
	*Hierarchies
	t    *testing.T
	root string
}

// newFake makes the files, each with its content. Directories follow from them.
func newFake(t *testing.T, files map[string]string) *fake {
	t.Helper()
	f := &fake{t: t, root: t.TempDir()}
	for name, content := range files {
		f.put(name, content)
	}
	h, err := find(f.root)
	if err != nil {
		t.Fatal(err)
	}
	f.Hierarchies = h
	return f
}

func (f *fake) put(name, content string) {
	f.t.Helper()
	path := filepath.Join(f.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) expect(want map[string]string) {
	f.t.Helper()
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(f.root, filepath.FromSlash(name)))
		if err != nil || strings.TrimSpace(string(got)) != content {
			f.t.Errorf("%s: %q, %v; want %q", name, got, err, content)
		}
	}
}

func (f *fake) gone(name string) bool {
	_, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(name)))
	return os.IsNotExist(err)
}

// v1 is a machine with controllers apart and together.
func v1(t *testing.T) *fake {
	files := map[string]string{}
	for _, controller := range []string{"cpu,cpuacct", "memory", "pids", "unified", "freezer"} {
		files[controller+"/cgroup.procs"] = ""
	}
	return newFake(t, files)
}

// v2 is a machine with version 2 only.
func v2(t *testing.T) *fake {
	return newFake(t, map[string]string{"cgroup.procs": "", "cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma\n", "cgroup.subtree_control": "cpu\n"})
}
