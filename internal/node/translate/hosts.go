package translate

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

const maxHostname = 63

// Hostname is the name that the pod's containers see, and its domain when it has a subdomain.
func Hostname(n *Node, pod *v1.Pod) (name, domain string) {
	if o := pod.Spec.HostnameOverride; o != nil && *o != "" {
		return *o, ""
	}
	if pod.Spec.HostNetwork {
		return n.Hostname, ""
	}
	name = pod.Name
	if pod.Spec.Hostname != "" {
		name = pod.Spec.Hostname
	}
	if len(name) > maxHostname {
		name = strings.TrimRight(name[:maxHostname], "-.")
	}
	if pod.Spec.Subdomain != "" {
		domain = fmt.Sprintf("%s.%s.svc.%s", pod.Spec.Subdomain, pod.Namespace, n.ClusterDomain)
	}
	return name, domain
}

const hostsHead = "# Kubernetes-managed hosts file.\n"

const hostsBase = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// Hosts is the content of a pod's /etc/hosts. A pod on the host's network has the host's, with its own aliases.
func Hosts(n *Node, pod *v1.Pod, podIPs []string, hostFile string) string {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.WriteString(hostFile)
	} else {
		b.WriteString(hostsHead)
		b.WriteString(hostsBase)
		name, domain := Hostname(n, pod)
		for _, ip := range podIPs {
			if domain != "" {
				fmt.Fprintf(&b, "%s\t%s.%s\t%s\n", ip, name, domain, name)
			} else {
				fmt.Fprintf(&b, "%s\t%s\n", ip, name)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range pod.Spec.HostAliases {
			fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
		}
	}
	return b.String()
}
