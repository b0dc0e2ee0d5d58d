// Package translate turns what a pod's manifest says into what a container runtime understands: sandbox and container configurations of
// the CRI, cgroup parameters, environment, security settings, /etc/hosts and /etc/resolv.conf.
//
//	pod, container ──► Sandbox, Container ──► cri.PodSandboxConfig, cri.ContainerConfig
//	                     ▲
//	Sources (ConfigMaps, Secrets, Services), Node (addresses, DNS, capacity), mounts from the volumes
//
// It calls no runtime and writes no files. Every function answers the same for the same arguments.
package translate
