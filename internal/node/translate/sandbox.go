package translate

import (
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// LogDir is where the logs of a pod's containers are.
func LogDir(rootDir string, pod *v1.Pod) string {
	return filepath.Join(rootDir, "logs", pod.Namespace+"_"+pod.Name+"_"+string(pod.UID))
}

// LogPath is where one attempt of a container logs, relative to LogDir.
func LogPath(container string, attempt int32) string {
	return filepath.Join(container, fmt.Sprintf("%d.log", attempt))
}

// Sandbox is the configuration of a pod's sandbox.
func Sandbox(n *Node, pod *v1.Pod, attempt uint32) *cri.PodSandboxConfig {
	p := podContext(pod)
	hostname, domain := Hostname(n, pod)
	if isTrue(pod.Spec.SetHostnameAsFQDN) && domain != "" {
		hostname += "." + domain
	}
	if pod.Spec.HostNetwork {
		hostname = ""
	}
	linux := &cri.LinuxPodSandboxConfig{
		CgroupParent: CgroupParent(n.CgroupRoot, pod),
		Sysctls:      sysctls(p),
		Resources:    PodResources(pod),
		SecurityContext: &cri.LinuxSandboxSecurityContext{
			NamespaceOptions:         namespaces(n, pod),
			RunAsUser:                pick(nil, p.RunAsUser),
			RunAsGroup:               pick(nil, p.RunAsGroup),
			SupplementalGroups:       groups(p),
			SupplementalGroupsPolicy: groupsPolicy(p),
			Privileged:               anyPrivileged(pod),
			Seccomp:                  &cri.SecurityProfile{ProfileType: cri.SecurityProfile_RuntimeDefault},
			SelinuxOptions:           selinux(p.SELinuxOptions, nil),
		},
	}
	return &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: pod.Name, Uid: string(pod.UID), Namespace: pod.Namespace, Attempt: attempt},
		Hostname:     hostname,
		LogDirectory: LogDir(n.RootDir, pod),
		DnsConfig:    DNS(n, pod).cri(),
		PortMappings: ports(pod),
		Labels:       podLabels(pod),
		Annotations:  pod.Annotations,
		Linux:        linux,
	}
}

func sysctls(p *v1.PodSecurityContext) map[string]string {
	out := make(map[string]string, len(p.Sysctls))
	for _, s := range p.Sysctls {
		out[s.Name] = s.Value
	}
	return out
}

func anyPrivileged(pod *v1.Pod) bool {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if s := list[i].SecurityContext; s != nil && isTrue(s.Privileged) {
				return true
			}
		}
	}
	return false
}

func ports(pod *v1.Pod) []*cri.PortMapping {
	var out []*cri.PortMapping
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, p := range list[i].Ports {
				protocol := map[v1.Protocol]cri.Protocol{v1.ProtocolUDP: cri.Protocol_UDP, v1.ProtocolSCTP: cri.Protocol_SCTP}[p.Protocol]
				out = append(out, &cri.PortMapping{Protocol: protocol, ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP})
			}
		}
	}
	return out
}
