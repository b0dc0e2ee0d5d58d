package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// security is a container with a changed security context.
func security(name string, change func(*cri.LinuxContainerSecurityContext), args ...string) *cri.ContainerConfig {
	config := containerConfig(name, args...)
	change(config.Linux.SecurityContext)
	return config
}

func TestWhatAContainerSees(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	none := func(*cri.LinuxContainerSecurityContext) {}
	procs := "/sys/fs/cgroup/pids/cgroup.procs"
	if f.r.machine.unified {
		procs = "/sys/fs/cgroup/cgroup.procs"
	}
	for i, test := range []struct {
		name   string
		change func(*cri.LinuxContainerSecurityContext)
		args   string
		want   string
	}{
		{"host name", none, "hostname env HOSTNAME", "pod-1\npod-1"},
		{"process 1", none, "pid", "pid 1"},
		{"root", none, "id", "uid 0 gid 0 groups []"},
		{"environment", none, "env FROM env BOTH env PATH", "image\npod\n/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		{"user by number", func(c *cri.LinuxContainerSecurityContext) { c.RunAsUser = &cri.Int64Value{Value: 1001} }, "id", "uid 1001 gid 2001 groups [50]"},
		{"user by name", func(c *cri.LinuxContainerSecurityContext) { c.RunAsUsername = "alice" }, "id", "uid 1001 gid 2001 groups [50]"},
		{"unknown number", func(c *cri.LinuxContainerSecurityContext) { c.RunAsUser = &cri.Int64Value{Value: 77} }, "id", "uid 77 gid 0 groups []"},
		{"group", func(c *cri.LinuxContainerSecurityContext) {
			c.RunAsUser, c.RunAsGroup = &cri.Int64Value{Value: 77}, &cri.Int64Value{Value: 88}
			c.SupplementalGroups = []int64{99, 98}
		}, "id", "uid 77 gid 88 groups [98 99]"},
		{"strict groups", func(c *cri.LinuxContainerSecurityContext) {
			c.RunAsUsername, c.SupplementalGroupsPolicy = "alice", cri.SupplementalGroupsPolicy_Strict
			c.SupplementalGroups = []int64{7}
		}, "id", "uid 1001 gid 2001 groups [7]"},
		{"default capabilities", none, "proc CapEff", "CapEff: 00000000a80425fb"},
		{"no capabilities", func(c *cri.LinuxContainerSecurityContext) {
			c.Capabilities = &cri.Capability{DropCapabilities: []string{"ALL"}}
		}, "proc CapEff", "CapEff: 0000000000000000"},
		{"one capability", func(c *cri.LinuxContainerSecurityContext) {
			c.Capabilities = &cri.Capability{DropCapabilities: []string{"ALL"}, AddCapabilities: []string{"NET_ADMIN"}}
		}, "proc CapEff", "CapEff: 0000000000001000"},
		{"no new privileges", func(c *cri.LinuxContainerSecurityContext) { c.NoNewPrivs = true }, "proc NoNewPrivs", "NoNewPrivs: 1"},
		{"unconfined", none, "proc Seccomp keyring", "Seccomp: 0\nkeyring: <nil>"},
		{"confined", func(c *cri.LinuxContainerSecurityContext) { c.Seccomp = &cri.SecurityProfile{} }, "proc Seccomp keyring", "Seccomp: 2\nkeyring: operation not permitted"},
		{"writable root", none, "write /new x cat /new", "x"},
		{"read-only root", func(c *cri.LinuxContainerSecurityContext) { c.ReadonlyRootfs = true }, "write /new x", "open /new: read-only file system"},
		{"masked path", func(c *cri.LinuxContainerSecurityContext) { c.MaskedPaths = []string{"/etc/passwd"} }, "cat /etc/passwd", "stdout F"},
		{"read-only path", func(c *cri.LinuxContainerSecurityContext) { c.ReadonlyPaths = []string{"/proc/sys"} }, "write /proc/sys/kernel/domainname x",
			"open /proc/sys/kernel/domainname: read-only file system"},
		{"cgroups", none, "write " + procs + " y", "open " + procs + ": read-only file system"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := security(fmt.Sprintf("c%d", i), test.change, strings.Fields(test.args)...)
			config.Envs = []*cri.KeyValue{{Key: "BOTH", Value: []byte("pod")}}
			got := strings.ReplaceAll(strings.TrimSpace(f.output(pod, config)), "stdout F ", "")
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestMounts(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	host := t.TempDir()
	for name, text := range map[string]string{"file": "content", "hosts": "10.0.0.1 other"} {
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config := containerConfig("main", "cat", "/data/file", "cat", "/etc/hosts", "write", "/data/new", "x", "write", "/ro/new", "x", "cat", "/deep/er/file")
	config.Mounts = []*cri.Mount{
		{ContainerPath: "/deep/er", HostPath: host},
		{ContainerPath: "/data", HostPath: host},
		{ContainerPath: "/ro", HostPath: host, Readonly: true},
		{ContainerPath: "/etc/hosts", HostPath: filepath.Join(host, "hosts")},
	}
	want := "stdout F content\nstdout F 10.0.0.1 other\nstdout F open /ro/new: read-only file system\nstdout F content\n"
	if got := f.output(pod, config); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, err := os.ReadFile(filepath.Join(host, "new")); err != nil || string(text) != "x" {
		t.Errorf("what the container wrote: %q, %v", text, err)
	}
	config = containerConfig("missing")
	config.Mounts = []*cri.Mount{{ContainerPath: "/data", HostPath: filepath.Join(host, "nothing")}}
	id := f.create(pod, config)
	if _, err := f.r.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: id}); err == nil || !strings.Contains(err.Error(), "mount /data: lstat") {
		t.Errorf("a missing host path: %v", err)
	}
}

func TestMountPropagation(t *testing.T) {
	f := newFixture(t)
	shared := t.TempDir()
	if err := unix.Mount("tmpfs", shared, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(shared, unix.MNT_DETACH) })
	if err := unix.Mount("", shared, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"from-container", "from-host"} {
		if err := os.Mkdir(filepath.Join(shared, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pod := f.pod()
	config := security("both", func(c *cri.LinuxContainerSecurityContext) { c.Privileged = true },
		"mount", "/data/from-container", "write", "/data/from-container/file", "x", "say", "mounted", "await", "/data/from-host/file", "say", "seen")
	config.Mounts = []*cri.Mount{{ContainerPath: "/data", HostPath: shared, Propagation: cri.MountPropagation_PROPAGATION_BIDIRECTIONAL}}
	both := f.run(pod, config)
	config = containerConfig("slave", "say", "up", "await", "/data/from-host/file", "say", "seen")
	config.Mounts = []*cri.Mount{{ContainerPath: "/data", HostPath: shared, Propagation: cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER}}
	slave := f.run(pod, config)
	f.awaitLine(both, "mounted")
	f.awaitLine(slave, "up")
	if _, err := os.Stat(filepath.Join(shared, "from-container/file")); err != nil {
		t.Errorf("what the container mounted is not seen outside: %v", err)
	}
	host := filepath.Join(shared, "from-host")
	if err := unix.Mount("tmpfs", host, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{both, slave} {
		if got := f.wait(id); got.ExitCode != 0 {
			t.Errorf("got %v", got)
		}
	}
}

func TestImageVolumes(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	config := containerConfig("main", "cat", "/image/etc/group", "write", "/image/new", "x", "cat", "/sub/passwd")
	config.Mounts = []*cri.Mount{
		{ContainerPath: "/image", Image: &cri.ImageSpec{Image: "worker:1"}, Readonly: true},
		{ContainerPath: "/sub", Image: &cri.ImageSpec{Image: "worker:1"}, ImageSubPath: "etc", Readonly: true},
	}
	got := f.output(pod, config)
	if !strings.Contains(got, "staff:x:50:alice") || !strings.Contains(got, "open /image/new: read-only file system") || !strings.Contains(got, "alice:x:1001") {
		t.Errorf("got %q", got)
	}
	for name, mount := range map[string]*cri.Mount{
		"leads-out": {ContainerPath: "/sub", Image: &cri.ImageSpec{Image: "worker:1"}, ImageSubPath: "../../..", Readonly: true},
		"no-image":  {ContainerPath: "/sub", Image: &cri.ImageSpec{Image: "none:1"}, Readonly: true},
	} {
		config := containerConfig(name)
		config.Mounts = []*cri.Mount{mount}
		id := f.create(pod, config)
		if _, err := f.r.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: id}); err == nil {
			t.Errorf("%s was started", name)
		}
	}
}

// cgroupFile reads a container's cgroup: v1's file of a controller, or v2's.
func (f *fixture) cgroupFile(pod, id, controller, v1, v2 string) string {
	f.t.Helper()
	s, err := f.r.sandbox(pod)
	if err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.r.machine.hierarchy(controller), f.r.cgroupParent(s), id, v1)
	if f.r.machine.unified {
		path = filepath.Join(cgroupRoot, f.r.cgroupParent(s), id, v2)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestLimitsAndTheirUpdate(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	config := containerConfig("main", "wait")
	config.Linux.Resources = &cri.LinuxContainerResources{
		CpuShares: 512, CpuQuota: 50_000, CpuPeriod: 100_000, MemoryLimitInBytes: 64 << 20, OomScoreAdj: 900, Unified: map[string]string{"pids.max": "123"},
	}
	id := f.run(pod, config)
	check := func(shares, weight, quota, limit string) {
		t.Helper()
		if f.r.machine.unified {
			shares, quota = weight, quota+" 100000"
		}
		for _, c := range []struct{ controller, v1, v2, want string }{
			{"cpu", "cpu.shares", "cpu.weight", shares},
			{"cpu", "cpu.cfs_quota_us", "cpu.max", quota},
			{"memory", "memory.limit_in_bytes", "memory.max", limit},
			{"pids", "pids.max", "pids.max", "123"},
		} {
			if got := f.cgroupFile(pod, id, c.controller, c.v1, c.v2); got != c.want {
				t.Errorf("%s is %s, want %s", c.v1, got, c.want)
			}
		}
	}
	check("512", "59", "50000", "67108864")
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", f.pid(id))); err != nil || strings.TrimSpace(string(score)) != "900" {
		t.Errorf("oom_score_adj is %q, %v", score, err)
	}
	update := &cri.LinuxContainerResources{CpuShares: 1024, CpuQuota: 75_000, MemoryLimitInBytes: 96 << 20}
	if _, err := f.r.UpdateContainerResources(t.Context(), &cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: update}); err != nil {
		t.Fatal(err)
	}
	check("1024", "100", "75000", "100663296")
	f.reopen()
	got := f.status(id).Resources.Linux
	if got.CpuShares != 1024 || got.CpuPeriod != 100_000 || got.MemoryLimitInBytes != 96<<20 || got.OomScoreAdj != 900 {
		t.Errorf("recorded: %v", got)
	}
	if got, err := f.r.ExecSync(t.Context(), &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"/worker", "say", "hi"}}); err != nil || string(got.Stdout) != "hi\n" {
		t.Errorf("exec after an update: %v, %v", got, err)
	}
	f.stop(id)
}

func TestSharedProcessNamespace(t *testing.T) {
	f := newFixture(t)
	pod := f.pod(func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{Pid: cri.NamespaceMode_POD}}
	})
	shared := func(c *cri.LinuxContainerSecurityContext) {
		c.NamespaceOptions = &cri.NamespaceOption{Pid: cri.NamespaceMode_POD}
	}
	id := f.run(pod, security("main", shared, "orphan", "term", "say", "up", "wait"))
	f.awaitLine(id, "up")
	if got := f.output(pod, security("other", shared, "pid")); got == "stdout F pid 1\n" {
		t.Errorf("the container is process 1: %q", got)
	}
	target := func(c *cri.LinuxContainerSecurityContext) {
		c.NamespaceOptions = &cri.NamespaceOption{Pid: cri.NamespaceMode_TARGET, TargetId: id}
	}
	if got := f.output(pod, security("debug", target, "cat", "/proc/1/comm")); !strings.HasPrefix(got, "stdout F ") {
		t.Errorf("the target's processes are not seen: %q", got)
	}
	f.killHelper(pod)
	f.stop(id)
	if got := f.status(id); got.ExitCode != 137 {
		t.Errorf("got %v", got)
	}
	// The orphan went with its container, though process 1 of its namespace goes on.
	if got := f.output(pod, security("fresh", shared, "processes")); got != "stdout F processes 2\n" {
		t.Errorf("%q are left in the pod, want process 1 and the one that counts", got)
	}
}

func TestHostNamespaces(t *testing.T) {
	f := newFixture(t)
	pod := f.pod(func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{
			Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_NODE, Ipc: cri.NamespaceMode_NODE,
		}}
	})
	host := func(c *cri.LinuxContainerSecurityContext) {
		c.NamespaceOptions = &cri.NamespaceOption{Network: cri.NamespaceMode_NODE, Pid: cri.NamespaceMode_NODE, Ipc: cri.NamespaceMode_NODE}
	}
	id := f.run(pod, security("main", host, "hostname", "orphan", "wait"))
	f.eventually("an orphan", func() bool { return strings.Contains(f.log(id), "orphan") })
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if got := f.log(id); !strings.HasPrefix(got, "stdout F "+name+"\n") {
		t.Errorf("host name: %q, want %s", got, name)
	}
	for _, kind := range []string{"net", "ipc", "uts", "pid"} {
		theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", f.pid(id), kind))
		ours, _ := os.Readlink("/proc/self/ns/" + kind)
		if err != nil || theirs != ours {
			t.Errorf("%s namespace: %s, want the host's %s (%v)", kind, theirs, ours, err)
		}
	}
	f.stop(id) // and the orphan with it, as the check of traces will tell
}

func TestPrivileged(t *testing.T) {
	f := newFixture(t)
	config := security("main", func(c *cri.LinuxContainerSecurityContext) { c.Privileged = true }, "proc", "CapEff", "ls", "/dev")
	got := f.output(f.pod(), config)
	if !strings.Contains(got, "stdout F kmsg\n") && !strings.Contains(got, "stdout F loop-control\n") && !strings.Contains(got, "stdout F vda\n") {
		t.Errorf("the machine's devices are not there: %s", got)
	}
	if want := "CapEff: 0000"; !strings.HasPrefix(got, "stdout F "+want) {
		t.Errorf("got %s, want %s...", got, want)
	}
}

func TestLogRotation(t *testing.T) {
	f := newFixture(t)
	id := f.run(f.pod(), containerConfig("main", "count", "5ms"))
	f.awaitLine(id, "line 2")
	path := f.status(id).LogPath
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.r.ReopenContainerLog(t.Context(), &cri.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		t.Fatal(err)
	}
	f.eventually("a line in the new file", func() bool { text, _ := os.ReadFile(path); return len(text) > 0 })
	f.stop(id)
	old, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(old, fresh...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.checkCount(id)
}

// TestCPUShares checks that requests of 1 and 3 cores share a contended CPU 1 to 3.
func TestCPUShares(t *testing.T) {
	f := newFixture(t)
	var pods, ids []string
	for i, shares := range []int64{1024, 3072} {
		pod := f.pod()
		config := containerConfig(fmt.Sprintf("c%d", i), "spin")
		config.Linux.Resources.CpuShares = shares
		config.Linux.Resources.CpusetCpus = "0"
		// Shares count among the children of one cgroup, so the pods' own are given them too, as the agent does.
		pods, ids = append(pods, pod), append(ids, f.run(pod, config))
		f.setPodShares(pod, shares)
	}
	used := func(i int) uint64 {
		s, err := f.r.sandbox(pods[i])
		if err != nil {
			t.Fatal(err)
		}
		return f.r.machine.usageOf(filepath.Join(f.r.cgroupParent(s), ids[i])).cpu
	}
	before := []uint64{used(0), used(1)}
	f.eventually("a second of CPU time", func() bool { return used(0)+used(1)-before[0]-before[1] > 1e9 })
	ratio := float64(used(1)-before[1]) / float64(used(0)-before[0])
	if ratio < 2.5 || ratio > 3.5 {
		t.Errorf("CPU time was shared 1 to %.2f, want 1 to 3", ratio)
	}
}

func (f *fixture) setPodShares(pod string, shares int64) {
	f.t.Helper()
	s, err := f.r.sandbox(pod)
	if err != nil {
		f.t.Fatal(err)
	}
	path, value := filepath.Join(f.r.machine.hierarchy("cpu"), f.r.cgroupParent(s), "cpu.shares"), shares
	if f.r.machine.unified {
		path, value = filepath.Join(cgroupRoot, f.r.cgroupParent(s), "cpu.weight"), 1+(shares-2)*9999/262142
	}
	if err := os.WriteFile(path, []byte(fmt.Sprint(value)), 0); err != nil {
		f.t.Fatal(err)
	}
}
