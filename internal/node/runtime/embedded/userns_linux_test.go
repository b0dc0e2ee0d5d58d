package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const firstUser = 1 << 20

var userMap = []*cri.IDMapping{{HostId: firstUser, ContainerId: 0, Length: 1 << 16}}

// ownUsers gives a pod a user namespace.
func ownUsers(pid cri.NamespaceMode) *cri.NamespaceOption {
	return &cri.NamespaceOption{Pid: pid, UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: userMap, Gids: userMap}}
}

func (f *fixture) podWithUsers(pid cri.NamespaceMode) string {
	return f.pod(func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: ownUsers(pid)}
		c.Linux.Sysctls = map[string]string{"net.ipv4.ip_unprivileged_port_start": "79"}
	})
}

func owner(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestUserNamespace: root in the pod is nobody on the machine, and yet owns the image's files and those of its volumes.
func TestUserNamespace(t *testing.T) {
	f := newFixture(t)
	pod := f.podWithUsers(cri.NamespaceMode_CONTAINER)
	volume := t.TempDir()
	config := containerConfig("root",
		"id", "cat", "/proc/self/uid_map", "write", "/volume/file", "x", "write", "/file", "x", "cat", "/proc/sys/net/ipv4/ip_unprivileged_port_start", "hostname", "term", "wait")
	config.Mounts = []*cri.Mount{{ContainerPath: "/volume", HostPath: volume, UidMappings: userMap, GidMappings: userMap}}
	config.Linux.SecurityContext.NamespaceOptions = ownUsers(cri.NamespaceMode_CONTAINER)
	id := f.run(pod, config)
	f.awaitLine(id, "pod-1")
	log := f.log(id)
	for _, want := range []string{"uid 0 gid 0", "0    1048576      65536", "F 79\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	var stat unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d", f.pid(id)), &stat); err != nil || stat.Uid != firstUser {
		t.Errorf("the process is of user %d on the machine, %v", stat.Uid, err)
	}
	if got := owner(t, filepath.Join(volume, "file")); got != 0 {
		t.Errorf("what root wrote into the volume belongs to user %d", got)
	}
	if got := owner(t, filepath.Join(f.r.containerDir(id), "rw", "upper", "file")); got != firstUser {
		t.Errorf("what root wrote beside the image belongs to user %d on the machine", got)
	}
	if mounts, err := mountsBelow(f.r.containerDir(id)); err != nil || len(mounts) > 0 {
		t.Errorf("mounts that only the start needed: %v, %v", mounts, err)
	}
	got, err := f.r.ExecSync(t.Context(), &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"/worker", "id"}})
	if err != nil || !strings.Contains(string(got.Stdout), "uid 0") {
		t.Errorf("exec: %v, %v", got, err)
	}
	f.reopen()
	terminate(t, f.pid(id))
	if got := f.wait(id); got.ExitCode != 7 {
		t.Errorf("exit code %d: %s", got.ExitCode, got.Message)
	}
}

// TestUserNamespaceOfASharedPod: containers of one pod share users and processes, also after the helper was killed.
func TestUserNamespaceOfASharedPod(t *testing.T) {
	f := newFixture(t)
	pod := f.podWithUsers(cri.NamespaceMode_POD)
	config := func(name string, args ...string) *cri.ContainerConfig {
		c := containerConfig(name, args...)
		c.Linux.SecurityContext.NamespaceOptions = ownUsers(cri.NamespaceMode_POD)
		return c
	}
	first := f.run(pod, config("first", "pid", "say", "up", "wait"))
	f.awaitLine(first, "up")
	if log := f.log(first); strings.Contains(log, "pid 1\n") {
		t.Errorf("the container is process 1 of a shared namespace:\n%s", log)
	}
	f.killHelper(pod)
	if got := f.output(pod, config("second", "cat", "/proc/self/uid_map")); !strings.Contains(got, "1048576") {
		t.Errorf("after the helper was killed: %q", got)
	}
}
