package translate

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Resolv is the content of a resolv.conf.
type Resolv struct {
	Servers, Searches, Options []string
}

// ParseResolv reads a resolv.conf. As in the C library the last search line counts, and lines that are not understood are passed over.
func ParseResolv(text string) Resolv {
	var r Resolv
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || strings.HasPrefix(fields[0], "#") || strings.HasPrefix(fields[0], ";") {
			continue
		}
		switch fields[0] {
		case "nameserver":
			r.Servers = append(r.Servers, fields[1])
		case "search":
			r.Searches = nil
			for _, s := range fields[1:] {
				if s != "." {
					s = strings.TrimSuffix(s, ".")
				}
				r.Searches = append(r.Searches, s)
			}
		case "options":
			r.Options = append(r.Options, fields[1:]...)
		}
	}
	return r
}

func (r Resolv) String() string {
	var b strings.Builder
	if len(r.Searches) > 0 {
		b.WriteString("search " + strings.Join(r.Searches, " ") + "\n")
	}
	for _, s := range r.Servers {
		b.WriteString("nameserver " + s + "\n")
	}
	if len(r.Options) > 0 {
		b.WriteString("options " + strings.Join(r.Options, " ") + "\n")
	}
	return b.String()
}

// The limits of the C library and of Kubernetes.
const (
	maxServers     = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// DNS is what a pod's resolv.conf says, from its dnsPolicy and dnsConfig.
func DNS(n *Node, pod *v1.Pod) Resolv {
	var r Resolv
	clusterFirst := pod.Spec.DNSPolicy == v1.DNSClusterFirstWithHostNet ||
		(pod.Spec.DNSPolicy == v1.DNSClusterFirst || pod.Spec.DNSPolicy == "") && !pod.Spec.HostNetwork
	switch {
	case pod.Spec.DNSPolicy == v1.DNSNone:
	case clusterFirst && len(n.ClusterDNS) > 0:
		r.Servers = slices.Clone(n.ClusterDNS)
		if n.ClusterDomain != "" {
			r.Searches = []string{pod.Namespace + ".svc." + n.ClusterDomain, "svc." + n.ClusterDomain, n.ClusterDomain}
		}
		r.Searches = append(r.Searches, n.HostResolv.Searches...)
		r.Options = []string{"ndots:5"}
	default:
		h := n.HostResolv
		r = Resolv{Servers: slices.Clone(h.Servers), Searches: slices.Clone(h.Searches), Options: slices.Clone(h.Options)}
	}
	if c := pod.Spec.DNSConfig; c != nil {
		r.Servers = append(r.Servers, c.Nameservers...)
		r.Searches = append(r.Searches, c.Searches...)
		r.Options = mergeOptions(r.Options, c.Options)
	}
	r.Servers = unique(r.Servers)
	r.Servers = r.Servers[:min(maxServers, len(r.Servers))]
	r.Searches = cutSearches(unique(r.Searches))
	return r
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func cutSearches(list []string) []string {
	list = list[:min(maxSearches, len(list))]
	for len(strings.Join(list, " ")) > maxSearchChars {
		list = list[:len(list)-1]
	}
	return list
}

// mergeOptions lets the pod's options replace those of the same name.
func mergeOptions(base []string, own []v1.PodDNSConfigOption) []string {
	for _, o := range own {
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		i := slices.IndexFunc(base, func(b string) bool { name, _, _ := strings.Cut(b, ":"); return name == o.Name })
		if i >= 0 {
			base[i] = text
		} else {
			base = append(base, text)
		}
	}
	return base
}

func (r Resolv) cri() *cri.DNSConfig {
	return &cri.DNSConfig{Servers: r.Servers, Searches: r.Searches, Options: r.Options}
}
