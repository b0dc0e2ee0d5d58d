package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	h := v1(t)
	if err := os.Symlink("cpu,cpuacct", filepath.Join(h.root, "cpu")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	again, err := find(h.root)
	if err != nil {
		t.Fatal(err)
	}
	if again.Unified() || len(again.Dirs()) != 5 {
		t.Errorf("unified %t, directories %q; want five of version 1", again.Unified(), again.Dirs())
	}
	for controller, want := range map[string]string{"cpu": "cpu,cpuacct", "cpuacct": "cpu,cpuacct", "memory": "memory", "hugetlb": ""} {
		if got := again.dir(controller); got != "" && filepath.Base(got) != want || got == "" && want != "" {
			t.Errorf("%s is at %q, want %q", controller, got, want)
		}
	}
	if h := v2(t); !h.Unified() || len(h.Dirs()) != 1 || h.dir("memory") != h.root {
		t.Errorf("unified %t, directories %q", h.Unified(), h.Dirs())
	}
	if _, err := find(t.TempDir()); err == nil || !strings.Contains(err.Error(), "mount cgroup2 there") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := find(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no directory is no error")
	}
}

func TestMakeInheritsCpusets(t *testing.T) {
	f := newFake(t, map[string]string{"cpuset/cgroup.procs": "", "cpuset/cpuset.cpus": "0-3\n", "cpuset/cpuset.mems": "0\n", "cpu/cgroup.procs": ""})
	for _, dir := range []string{"a", "a/b", "a/b/c"} {
		f.put("cpuset/"+dir+"/cpuset.cpus", "\n")
		f.put("cpuset/"+dir+"/cpuset.mems", "\n")
	}
	f.put("cpuset/a/b/cpuset.cpus", "1\n") // set by somebody: stays
	if err := f.Make("a/b/c"); err != nil {
		t.Fatal(err)
	}
	f.expect(map[string]string{
		"cpuset/a/cpuset.cpus": "0-3", "cpuset/a/b/cpuset.cpus": "1", "cpuset/a/b/c/cpuset.cpus": "1", "cpuset/a/b/c/cpuset.mems": "0",
	})
	if f.gone("cpu/a/b/c") {
		t.Error("the other hierarchy has no cgroup")
	}
}

func TestMakeEnablesControllers(t *testing.T) {
	f := v2(t)
	f.put("a/cgroup.controllers", "cpu memory pids")
	f.put("a/cgroup.subtree_control", "")
	if err := f.Make("/a/b"); err != nil {
		t.Fatal(err)
	}
	// The kernel adds to what is enabled; here the file shows what was asked for.
	f.expect(map[string]string{"cgroup.subtree_control": "+cpuset +io +memory +hugetlb +pids", "a/cgroup.subtree_control": "+cpu +memory +pids"})
	if f.gone("a/b") || !f.gone("a/b/cgroup.subtree_control") {
		t.Error("a/b must be there, and be no inner cgroup")
	}
}

func TestRemoveTree(t *testing.T) {
	f := v1(t)
	if err := f.Make("top/cluster/node/burstable/pod1"); err != nil {
		t.Fatal(err)
	}
	f.put("memory/top/cluster/node/burstable/pod1/busy", "stands for a process")
	if err := f.RemoveTree("top/cluster/node"); err == nil {
		t.Error("a cgroup that is in use was removed, or nothing is said of it")
	}
	if !f.gone("pids/top/cluster/node") || f.gone("memory/top/cluster/node/burstable/pod1") {
		t.Error("what is empty must go, what is in use must stay")
	}
	if err := os.Remove(filepath.Join(f.root, "memory/top/cluster/node/burstable/pod1/busy")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.RemoveTree("/top/cluster/node"); err != nil {
			t.Error(err)
		}
	}
	f.put("pids/top/other/x", "")
	f.RemoveEmptyParents("/top/cluster/node")
	if !f.gone("memory/top") || !f.gone("pids/top/cluster") || f.gone("pids/top/other") {
		t.Error("empty parents must go, others stay")
	}
	for _, root := range []string{"", "/", "a/.."} {
		if err := f.RemoveTree(root); err == nil {
			t.Errorf("RemoveTree(%q) is no error", root)
		}
	}
}
