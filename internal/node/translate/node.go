package translate

import (
	v1 "k8s.io/api/core/v1"
)

// Node is what the translation has to know of the node.
type Node struct {
	Name, Hostname string
	// IPs are the node's addresses, the main one first.
	IPs []string
	// RootDir is the agent's directory.
	RootDir string
	// CgroupRoot is the cgroup below which all pods of the node are.
	CgroupRoot string
	// ClusterDNS are the addresses of the cluster's DNS servers; without any, pods use the host's.
	ClusterDNS    []string
	ClusterDomain string
	// HostResolv is the content of the host's resolv.conf.
	HostResolv            Resolv
	Capacity, Allocatable v1.ResourceList
	// FirstUser is the user of the machine that root is in the pod that is translated, 0 for pods without a user namespace.
	FirstUser int64
	// PodPIDs is how many processes a pod may have; 0 is any number.
	PodPIDs int64
}

func (n *Node) memory() int64 { return n.Capacity.Memory().Value() }
