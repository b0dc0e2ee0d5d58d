package embedded

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// checkSandbox refuses what this runtime does not do, before anything is made.
func checkSandbox(config *cri.PodSandboxConfig) error {
	context := config.GetLinux().GetSecurityContext()
	name := sandboxName(config.Metadata)
	if profile := context.GetApparmor(); profile.GetProfileType() == cri.SecurityProfile_Localhost {
		return status.Errorf(codes.Unimplemented, "%s: AppArmor profiles are not supported by this runtime", name)
	}
	s := &sandbox{config: config}
	if err := checkUserNamespace(s); err != nil {
		return status.Errorf(codes.InvalidArgument, "%s: %v", name, err)
	}
	for sysctl := range config.GetLinux().GetSysctls() {
		if err := checkSysctl(s, sysctl); err != nil {
			return status.Errorf(codes.InvalidArgument, "%s: %v", name, err)
		}
	}
	return nil
}

// checkSysctl makes sure that setting it changes the pod and not the machine.
func checkSysctl(s *sandbox, sysctl string) error {
	if strings.Contains(sysctl, "..") {
		return fmt.Errorf("sysctl %q is not a name", sysctl)
	}
	switch {
	case strings.HasPrefix(sysctl, "net."):
		if !s.owns("net") {
			return fmt.Errorf("sysctl %s would change the node, because the pod uses the host's network", sysctl)
		}
	case strings.HasPrefix(sysctl, "kernel.shm"), strings.HasPrefix(sysctl, "kernel.msg"), sysctl == "kernel.sem", strings.HasPrefix(sysctl, "fs.mqueue."):
		if !s.owns("ipc") {
			return fmt.Errorf("sysctl %s would change the node, because the pod uses the host's IPC", sysctl)
		}
	default:
		return fmt.Errorf("sysctl %s is not one of a namespace, so that it would change the node", sysctl)
	}
	return nil
}

// cgroupParent is the cgroup of a pod.
func (r *Runtime) cgroupParent(s *sandbox) string {
	return filepath.Join("/", cmp.Or(s.config.GetLinux().GetCgroupParent(), filepath.Join(r.config.CgroupParent, "pod"+s.config.Metadata.Uid)))
}

// spec makes the OCI spec of a container whose root file system is mounted. The helper runs inside the pod's namespaces, so those that
// the spec does not name are the pod's.
func (r *Runtime) spec(s *sandbox, c *container) (*specs.Spec, error) {
	context := c.config.GetLinux().GetSecurityContext()
	process, err := r.process(s, c)
	if err != nil {
		return nil, err
	}
	filter, err := r.seccomp(context, process.Capabilities.Bounding)
	if err != nil {
		return nil, err
	}
	mounts, propagation, err := r.mounts(s, c)
	if err != nil {
		return nil, err
	}
	namespaces, err := r.namespaces(s, c)
	if err != nil {
		return nil, err
	}
	spec := &specs.Spec{
		Version: specs.Version,
		Process: process,
		Root:    &specs.Root{Path: r.rootfs(c), Readonly: context.GetReadonlyRootfs()},
		Mounts:  mounts,
		Linux: &specs.Linux{
			CgroupsPath:       filepath.Join(r.cgroupParent(s), c.record.ID),
			Namespaces:        namespaces,
			Resources:         r.machine.resources(c.config.GetLinux().GetResources()),
			Seccomp:           filter,
			RootfsPropagation: propagation,
		},
	}
	if !context.GetPrivileged() {
		spec.Linux.MaskedPaths, spec.Linux.ReadonlyPaths = context.GetMaskedPaths(), context.GetReadonlyPaths()
	}
	return spec, addDevices(spec, c.config)
}

// process describes the container's command.
func (r *Runtime) process(s *sandbox, c *container) (*specs.Process, error) {
	context := c.config.GetLinux().GetSecurityContext()
	args, err := command(c)
	if err != nil {
		return nil, err
	}
	capabilities, err := r.machine.capabilities(context)
	if err != nil {
		return nil, err
	}
	user, err := resolveUser(r.rootfs(c), context, c.image.Config.User)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	c.user = criUser(user)
	r.mu.Unlock()
	score := r.machine.clampOOMScore(int(c.config.GetLinux().GetResources().GetOomScoreAdj()))
	return &specs.Process{
		Terminal:        c.config.Tty,
		Args:            args,
		Env:             environment(s, c),
		Cwd:             cmp.Or(c.config.WorkingDir, c.image.Config.WorkingDir, "/"),
		User:            *user,
		Capabilities:    capabilities,
		NoNewPrivileges: context.GetNoNewPrivs(),
		OOMScoreAdj:     &score,
	}, nil
}

func criUser(user *specs.User) *cri.LinuxContainerUser {
	result := &cri.LinuxContainerUser{Uid: int64(user.UID), Gid: int64(user.GID)}
	for _, gid := range append([]uint32{user.GID}, user.AdditionalGids...) {
		if !slices.Contains(result.SupplementalGroups, int64(gid)) {
			result.SupplementalGroups = append(result.SupplementalGroups, int64(gid))
		}
	}
	return result
}

// command is what runs: the pod's command replaces the image's entrypoint together with its arguments, the pod's arguments replace only those.
func command(c *container) ([]string, error) {
	entrypoint, args := c.image.Config.Entrypoint, c.image.Config.Cmd
	if len(c.config.Command) > 0 {
		entrypoint, args = c.config.Command, nil
	}
	if len(c.config.Args) > 0 {
		args = c.config.Args
	}
	all := slices.Concat(entrypoint, args)
	if len(all) == 0 {
		return nil, errors.New("no command is given, neither by the container nor by its image")
	}
	return all, nil
}

const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is the image's, overridden by the pod's, with what every process may expect below.
func environment(s *sandbox, c *container) []string {
	env := []string{defaultPath}
	if name := s.config.GetHostname(); name != "" {
		env = append(env, "HOSTNAME="+name)
	}
	if c.config.Tty {
		env = append(env, "TERM=xterm")
	}
	for _, variable := range c.image.Config.Env {
		env = setVariable(env, variable)
	}
	for _, variable := range c.config.Envs {
		env = setVariable(env, variable.Key+"="+string(variable.Value))
	}
	return env
}

func setVariable(env []string, variable string) []string {
	name, _, _ := strings.Cut(variable, "=")
	for i := range env {
		if strings.HasPrefix(env[i], name+"=") {
			env[i] = variable
			return env
		}
	}
	return append(env, variable)
}

// namespaces are those that the container has apart from the pod.
func (r *Runtime) namespaces(s *sandbox, c *container) ([]specs.LinuxNamespace, error) {
	list := []specs.LinuxNamespace{{Type: specs.MountNamespace}}
	if r.machine.unified {
		list = append(list, specs.LinuxNamespace{Type: specs.CgroupNamespace})
	}
	if s.userNamespace() != nil {
		list = append(list, specs.LinuxNamespace{Type: specs.UserNamespace, Path: r.pinPath(s, usernsPin)})
	}
	options := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if options == nil {
		options = s.namespaces()
	}
	if options == nil {
		options = &cri.NamespaceOption{Pid: cri.NamespaceMode_CONTAINER}
	}
	switch options.Pid {
	case cri.NamespaceMode_NODE:
		return list, nil
	case cri.NamespaceMode_POD:
		if !s.owns("pid") {
			return nil, errors.New("the container is to share the pod's PID namespace, but the pod sandbox was made without one")
		}
		return append(list, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: r.pinPath(s, "pid")}), nil
	case cri.NamespaceMode_TARGET:
		path, err := r.targetPID(s, options.TargetId)
		return append(list, specs.LinuxNamespace{Type: specs.PIDNamespace, Path: path}), err
	}
	return append(list, specs.LinuxNamespace{Type: specs.PIDNamespace}), nil
}

// targetPID is the PID namespace of another container of the pod, which is to be debugged.
func (r *Runtime) targetPID(s *sandbox, id string) (string, error) {
	target, err := r.container(id)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if target.record.SandboxID != s.record.ID {
		return "", fmt.Errorf("target container %s is not of the same pod", id)
	}
	if target.state.Phase != protocol.Running {
		return "", fmt.Errorf("target container %s is not running", id)
	}
	return "/proc/" + strconv.Itoa(target.state.PID) + "/ns/pid", nil
}

// resources turns the CRI's limits into OCI's. The CRI's zero is "not given". Everything that is not allowed is denied to the devices cgroup.
func (m *machine) resources(given *cri.LinuxContainerResources) *specs.LinuxResources {
	result := &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}}
	if given == nil {
		return result
	}
	cpu := &specs.LinuxCPU{Cpus: given.CpusetCpus, Mems: given.CpusetMems}
	if given.CpuShares > 0 {
		shares := uint64(given.CpuShares)
		cpu.Shares = &shares
	}
	if given.CpuQuota != 0 {
		cpu.Quota = &given.CpuQuota
	}
	if given.CpuPeriod > 0 {
		period := uint64(given.CpuPeriod)
		cpu.Period = &period
	}
	result.CPU = cpu
	if given.MemoryLimitInBytes != 0 {
		result.Memory = &specs.LinuxMemory{Limit: &given.MemoryLimitInBytes}
	}
	if given.MemorySwapLimitInBytes != 0 && m.hasSwapLimit() {
		if result.Memory == nil {
			result.Memory = &specs.LinuxMemory{}
		}
		result.Memory.Swap = &given.MemorySwapLimitInBytes
	}
	for _, limit := range given.HugepageLimits {
		if m.hasController("hugetlb") {
			result.HugepageLimits = append(result.HugepageLimits, specs.LinuxHugepageLimit{Pagesize: limit.PageSize, Limit: limit.Limit})
		}
	}
	m.addUnified(result, given.Unified)
	return result
}

// addUnified passes settings on that are given by the names of v2's files. Of those, v1 knows the number of processes.
func (m *machine) addUnified(result *specs.LinuxResources, unified map[string]string) {
	if m.unified {
		result.Unified = unified
		return
	}
	if limit, err := strconv.ParseInt(unified["pids.max"], 10, 64); err == nil {
		result.Pids = &specs.LinuxPids{Limit: &limit}
	}
}
