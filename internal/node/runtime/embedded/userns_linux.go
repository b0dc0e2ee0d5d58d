package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pod with a user namespace (hostUsers: false) has its other namespaces inside of that, so that root in the pod may do there what root may, and is
// nobody on the machine. Only a process that is in a new user namespace can make such namespaces, and only the machine's root can pin them: so a
// process is started in them all, they are pinned from outside, and it is ended. If the pod shares a PID namespace, that process is its process 1 and stays.

// usernsPin is the name of the pinned user namespace.
const usernsPin = "user"

// userNamespace is what the pod wants its user namespace to be; nil is the machine's.
func (s *sandbox) userNamespace() *cri.UserNamespace {
	u := s.namespaces().GetUsernsOptions()
	if u == nil || u.Mode != cri.NamespaceMode_POD {
		return nil
	}
	return u
}

// checkUserNamespace refuses mappings that this runtime does not do.
func checkUserNamespace(s *sandbox) error {
	u := s.userNamespace()
	if u == nil {
		return nil
	}
	for _, kind := range []string{"net", "ipc"} {
		if !s.owns(kind) {
			return fmt.Errorf("a pod with a user namespace cannot use the %s namespace of the host", kind)
		}
	}
	if s.namespaces().Pid == cri.NamespaceMode_NODE {
		return fmt.Errorf("a pod with a user namespace cannot use the pid namespace of the host")
	}
	if len(u.Uids) != 1 || len(u.Gids) != 1 || u.Uids[0].ContainerId != 0 || u.Gids[0].ContainerId != 0 || u.Uids[0].HostId != u.Gids[0].HostId {
		return fmt.Errorf("a user namespace needs one mapping of UIDs and the same of GIDs, from 0 on")
	}
	return nil
}

// makeNamespaces makes and pins the namespaces of a pod that has a user namespace.
func (r *Runtime) makeNamespaces(s *sandbox, l *launch) error {
	u := s.userNamespace()
	if u == nil {
		return nil
	}
	flags := uintptr(unix.CLONE_NEWUSER)
	for kind, flag := range podNamespaces {
		if s.owns(kind) {
			flags |= flag
		}
	}
	if s.owns("pid") {
		flags |= unix.CLONE_NEWPID
	}
	cmd := exec.Command("/proc/self/fd/3", "pause") // a process of other users may not look at the files of this one
	cmd.Args[0], cmd.Dir, cmd.ExtraFiles = "bayplan-pod", "/", []*os.File{l.binary}
	cmd.Env = []string{"GOMAXPROCS=1", "GOGC=50"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: flags, UidMappings: idMap(u.Uids), GidMappings: idMap(u.Gids)}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("user namespace: %w", err)
	}
	go func() { _ = cmd.Wait() }()
	err := r.pinNamespaces(s, cmd.Process.Pid)
	if err != nil || !s.owns("pid") {
		_ = cmd.Process.Kill()
	}
	return err
}

func idMap(list []*cri.IDMapping) (out []syscall.SysProcIDMap) {
	for _, m := range list {
		out = append(out, syscall.SysProcIDMap{ContainerID: int(m.ContainerId), HostID: int(m.HostId), Size: int(m.Length)})
	}
	return out
}

// pinNamespaces pins those of a process, and notes the process if it is the pod's process 1.
func (r *Runtime) pinNamespaces(s *sandbox, pid int) error {
	kinds := []string{usernsPin}
	for kind := range podNamespaces {
		if s.owns(kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		target := r.pinPath(s, kind)
		if err := os.WriteFile(target, nil, 0o600); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pin the %s namespace: %w", kind, err)
		}
	}
	if !s.owns("pid") {
		return nil
	}
	path := filepath.Join(r.runDir(s.record.ID), protocol.PauseName)
	return os.WriteFile(path, fmt.Appendf(nil, "%d %d", pid, protocol.StartTicks(pid)), 0o600)
}

// mapping is how the pod's users are mapped, for what is mounted from images; nil is not at all.
func (r *Runtime) mapping(s *sandbox) *image.Mapping {
	u := s.userNamespace()
	if u == nil {
		return nil
	}
	return &image.Mapping{Namespace: r.pinPath(s, usernsPin), Root: int(u.Uids[0].HostId)}
}

// mountMappings are those of a mount whose files are to belong to the pod's users as if they were the machine's.
func mountMappings(list []*cri.IDMapping) (out []specs.LinuxIDMapping) {
	for _, m := range list {
		out = append(out, specs.LinuxIDMapping{ContainerID: m.ContainerId, HostID: m.HostId, Size: m.Length})
	}
	return out
}
