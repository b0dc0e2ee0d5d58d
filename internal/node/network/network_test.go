package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func validConfig() Config {
	return Config{
		Cluster: "c1", RunDir: "/run/bayplan/c1", StateDir: "/var/lib/bayplan/network",
		NodeCIDR: netip.MustParsePrefix("10.0.0.0/24"), PodCIDR: netip.MustParsePrefix("10.1.0.0/16"), ServiceCIDR: netip.MustParsePrefix("10.2.0.0/16"),
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		want   []string // parts of the error; none when it is fine
	}{
		{"as it should be", func(*Config) {}, nil},
		{"nothing", func(c *Config) { *c = Config{} }, []string{"Cluster", "RunDir", "StateDir", "NodeCIDR", "PodCIDR", "ServiceCIDR"}},
		{"relative folder", func(c *Config) { c.RunDir = "run" }, []string{`RunDir: "run" is no absolute path`}},
		{"IPv6", func(c *Config) { c.PodCIDR = netip.MustParsePrefix("fd00::/64") }, []string{"PodCIDR: want an IPv4 prefix"}},
		{"overlap", func(c *Config) { c.ServiceCIDR = netip.MustParsePrefix("10.1.128.0/17") }, []string{"PodCIDR: 10.1.0.0/16 overlaps ServiceCIDR (10.1.128.0/17)"}},
		{"gateway", func(c *Config) { c.NodeCIDR = netip.MustParsePrefix("169.254.0.0/16") }, []string{"NodeCIDR", "link-local"}},
		{"loopback", func(c *Config) { c.ServiceCIDR = netip.MustParsePrefix("127.1.0.0/16") }, []string{"ServiceCIDR", "loopback"}},
		{"multicast", func(c *Config) { c.ServiceCIDR = netip.MustParsePrefix("239.1.0.0/16") }, []string{"ServiceCIDR", "multicast"}},
		{"few nodes", func(c *Config) { c.NodeCIDR = netip.MustParsePrefix("10.0.0.0/31") }, []string{"NodeCIDR: 10.0.0.0/31 has no address"}},
		{"small packets", func(c *Config) { c.MTU = 100 }, []string{"MTU: 100"}},
	} {
		config := validConfig()
		test.change(&config)
		got, err := config.complete()
		if len(test.want) == 0 && (err != nil || got.MTU != DefaultMTU) {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v; want one with %q", test.name, err, want)
			}
		}
	}
}

func TestNodeConfig(t *testing.T) {
	for _, test := range []struct{ name, podCIDR, want string }{
		{"node-1", "10.1.1.0/24", ""},
		{"rack1.node-1", "10.1.0.0/16", ""},
		{"", "10.1.1.0/24", "the name is not usable"},
		{"..", "10.1.1.0/24", "the name is not usable"},
		{"a/b", "10.1.1.0/24", "the name is not usable"},
		{"node-1", "10.3.1.0/24", "not a part of the cluster's 10.1.0.0/16"},
		{"node-1", "10.0.0.0/8", "not a part of the cluster's 10.1.0.0/16"},
		{"node-1", "10.1.1.4/31", "no address for a pod"},
	} {
		err := validConfig().checkNode(test.name, netip.MustParsePrefix(test.podCIDR))
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q %s: %v; want %q", test.name, test.podCIDR, err, test.want)
		}
	}
}

// Interfaces of several clusters, nodes and sandboxes have different names and hardware addresses, always the same ones, which Linux accepts.
func TestNames(t *testing.T) {
	seen := map[string]string{}
	for _, cluster := range []string{"c1", "c2"} {
		config := validConfig()
		config.Cluster = cluster
		for _, ids := range [][]string{{"a"}, {"b"}, {"a", "b"}, {"ab"}, {"a", "c"}} {
			for _, use := range []string{"pod", "nod"} {
				name, mac := config.interfaceName(use, ids...), config.hardwareAddress(use, ids...)
				if len(name) != 15 || !strings.HasPrefix(name, use) || name != config.interfaceName(use, ids...) {
					t.Errorf("name %q", name)
				}
				if len(mac) != 6 || mac[0] != 2 {
					t.Errorf("hardware address %s is not local and unicast", mac)
				}
				what := fmt.Sprint(cluster, use, ids)
				for _, key := range []string{name, mac.String()} {
					if other, ok := seen[key]; ok {
						t.Errorf("%s is of %s and of %s", key, other, what)
					}
					seen[key] = what
				}
			}
		}
	}
}
