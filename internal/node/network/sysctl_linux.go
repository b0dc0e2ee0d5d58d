package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// setting is a file under /proc/sys/net and what it must hold.
type setting struct{ path, value string }

// routerSettings make a namespace forward packets. The rest is said too, since a new namespace begins with the machine's own IPv4 settings.
// The strict reverse path filter is set for interfaces to come, and not for all: those with another need can then have it.
var routerSettings = []setting{
	{"ipv4/ip_forward", "1"},
	{"ipv4/conf/all/rp_filter", "0"},
	{"ipv4/conf/default/rp_filter", "1"},
	{"ipv4/conf/all/send_redirects", "0"},
	{"ipv4/conf/default/send_redirects", "0"},
	{"ipv4/icmp_ratelimit", "0"},
}

// set writes settings of the namespace. What holds the value already is not written: /proc/sys may be read-only.
func (in *inside) set(settings ...setting) error {
	return in.ns.Do(func() error {
		for _, s := range settings {
			path := filepath.Join("/proc/sys/net", s.path)
			data, err := os.ReadFile(path)
			if err == nil && strings.TrimSpace(string(data)) != s.value {
				err = os.WriteFile(path, []byte(s.value), 0)
			}
			if err != nil {
				return fmt.Errorf("setting net/%s to %s in %s: %w", s.path, s.value, in.ns.Path(), err)
			}
		}
		return nil
	})
}
