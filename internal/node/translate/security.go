package translate

import (
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What ordinary containers must not see or change of /proc and /sys.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
		"/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// seccompRoot is where profiles of type Localhost are, below the agent's root directory.
const seccompRoot = "seccomp"

// security is a container's security context, where the container doesn't say the pod's.
func security(n *Node, pod *v1.Pod, c *v1.Container, targetID string) *cri.LinuxContainerSecurityContext {
	p, s := podContext(pod), c.SecurityContext
	if s == nil {
		s = &v1.SecurityContext{}
	}
	out := &cri.LinuxContainerSecurityContext{
		NamespaceOptions:         namespaces(n, pod),
		Privileged:               isTrue(s.Privileged),
		RunAsUser:                pick(s.RunAsUser, p.RunAsUser),
		RunAsGroup:               pick(s.RunAsGroup, p.RunAsGroup),
		ReadonlyRootfs:           isTrue(s.ReadOnlyRootFilesystem),
		SupplementalGroups:       groups(p),
		SupplementalGroupsPolicy: groupsPolicy(p),
		NoNewPrivs:               s.AllowPrivilegeEscalation != nil && !*s.AllowPrivilegeEscalation,
		Seccomp:                  seccomp(n, p.SeccompProfile, s.SeccompProfile, isTrue(s.Privileged)),
		Apparmor:                 apparmor(p.AppArmorProfile, s.AppArmorProfile),
		SelinuxOptions:           selinux(p.SELinuxOptions, s.SELinuxOptions),
	}
	if targetID != "" {
		out.NamespaceOptions.Pid, out.NamespaceOptions.TargetId = cri.NamespaceMode_TARGET, targetID
	}
	if s.Capabilities != nil {
		out.Capabilities = &cri.Capability{AddCapabilities: names(s.Capabilities.Add), DropCapabilities: names(s.Capabilities.Drop)}
	}
	unmasked := s.ProcMount != nil && *s.ProcMount == v1.UnmaskedProcMount
	if !unmasked && !out.Privileged {
		out.MaskedPaths, out.ReadonlyPaths = maskedPaths, readonlyPaths
	}
	return out
}

func podContext(pod *v1.Pod) *v1.PodSecurityContext {
	if pod.Spec.SecurityContext == nil {
		return &v1.PodSecurityContext{}
	}
	return pod.Spec.SecurityContext
}

// namespaces tells which namespaces the pod has of its own.
func namespaces(n *Node, pod *v1.Pod) *cri.NamespaceOption {
	out := &cri.NamespaceOption{Network: cri.NamespaceMode_POD, Ipc: cri.NamespaceMode_POD, Pid: cri.NamespaceMode_CONTAINER}
	if pod.Spec.HostNetwork {
		out.Network = cri.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		out.Ipc = cri.NamespaceMode_NODE
	}
	if pod.Spec.HostPID {
		out.Pid = cri.NamespaceMode_NODE
	} else if isTrue(pod.Spec.ShareProcessNamespace) {
		out.Pid = cri.NamespaceMode_POD
	}
	if maps := UserMappings(n); maps != nil {
		out.UsernsOptions = &cri.UserNamespace{Mode: cri.NamespaceMode_POD, Uids: maps, Gids: maps}
	}
	return out
}

// usersPerPod is how many users a pod with a user namespace has.
const usersPerPod = 1 << 16

// UserMappings are those of a pod with a user namespace, of UIDs and GIDs alike; nil for others.
func UserMappings(n *Node) []*cri.IDMapping {
	if n.FirstUser == 0 {
		return nil
	}
	return []*cri.IDMapping{{HostId: uint32(n.FirstUser), ContainerId: 0, Length: usersPerPod}}
}

// OwnUsers tells whether the pod wants a user namespace.
func OwnUsers(pod *v1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

func pick(container, pod *int64) *cri.Int64Value {
	if container != nil {
		return &cri.Int64Value{Value: *container}
	}
	if pod != nil {
		return &cri.Int64Value{Value: *pod}
	}
	return nil
}

func groups(p *v1.PodSecurityContext) []int64 {
	out := append([]int64(nil), p.SupplementalGroups...)
	if p.FSGroup != nil {
		out = append(out, *p.FSGroup)
	}
	return out
}

func groupsPolicy(p *v1.PodSecurityContext) cri.SupplementalGroupsPolicy {
	if p.SupplementalGroupsPolicy != nil && *p.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		return cri.SupplementalGroupsPolicy_Strict
	}
	return cri.SupplementalGroupsPolicy_Merge
}

func seccomp(n *Node, pod, container *v1.SeccompProfile, privileged bool) *cri.SecurityProfile {
	p := container
	if p == nil {
		p = pod
	}
	unconfined := &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}
	if p == nil || privileged {
		return unconfined
	}
	switch p.Type {
	case v1.SeccompProfileTypeRuntimeDefault:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	case v1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile != nil {
			path := filepath.Join(n.RootDir, seccompRoot, filepath.FromSlash(*p.LocalhostProfile))
			return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost, LocalhostRef: path}
		}
	}
	return unconfined
}

func apparmor(pod, container *v1.AppArmorProfile) *cri.SecurityProfile {
	p := container
	if p == nil {
		p = pod
	}
	if p == nil {
		return nil
	}
	switch p.Type {
	case v1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile != nil {
			return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile}
		}
		return nil
	case v1.AppArmorProfileTypeUnconfined:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_Unconfined}
	default:
		return &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault}
	}
}

func selinux(pod, container *v1.SELinuxOptions) *cri.SELinuxOption {
	o := container
	if o == nil {
		o = pod
	}
	if o == nil {
		return nil
	}
	return &cri.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func names(caps []v1.Capability) []string {
	out := make([]string, len(caps))
	for i, c := range caps {
		out[i] = string(c)
	}
	return out
}

// VerifyNonRoot refuses a container that must not run as root but would. The image's user counts when the manifest names none.
func VerifyNonRoot(pod *v1.Pod, c *v1.Container, image *cri.Image) error {
	p, s := podContext(pod), c.SecurityContext
	if s == nil {
		s = &v1.SecurityContext{}
	}
	must := p.RunAsNonRoot
	if s.RunAsNonRoot != nil {
		must = s.RunAsNonRoot
	}
	if !isTrue(must) {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	if user := pick(s.RunAsUser, p.RunAsUser); user != nil {
		if user.Value == 0 {
			return fmt.Errorf("container's runAsUser breaks non-root policy %s", where)
		}
		return nil
	}
	name := strings.TrimSpace(image.GetUsername())
	switch {
	case image.GetUid() != nil && image.Uid.Value == 0, image.GetUid() == nil && name == "":
		return fmt.Errorf("container has runAsNonRoot and image will run as root %s", where)
	case image.GetUid() == nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s", name, where)
	}
	return nil
}
