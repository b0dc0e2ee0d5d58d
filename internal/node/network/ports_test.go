package network

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// mapping reads "TCP *:80 to 8080".
func mapping(t *testing.T, text string) PortMapping {
	t.Helper()
	var m PortMapping
	var host string
	if _, err := fmt.Sscanf(strings.Replace(text, ":", " ", 1), "%s %s %d to %d", &m.Protocol, &host, &m.HostPort, &m.ContainerPort); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if host != "*" {
		m.HostIP = netip.MustParseAddr(host)
	}
	return m
}

func parseMappings(t *testing.T, texts ...string) (all []PortMapping) {
	for _, text := range texts {
		all = append(all, mapping(t, text))
	}
	return all
}

func TestPlan(t *testing.T) {
	pod, other, dead := netip.MustParseAddr("10.1.1.2"), netip.MustParseAddr("10.1.1.3"), netip.MustParseAddr("10.1.1.4")
	published := mappings{
		pod:   parseMappings(t, "TCP *:80 to 8080", "UDP *:53 to 53"),
		other: parseMappings(t, "TCP 10.0.0.2:90 to 90"),
		dead:  parseMappings(t, "TCP *:70 to 70"),
	}
	for _, test := range []struct {
		want, add, remove, err string
	}{
		{want: "TCP *:80 to 8080, UDP *:53 to 53", add: "map[]", remove: "map[]"},
		{want: "TCP 0.0.0.0:80 to 8080, TCP *:80 to 8080, UDP *:53 to 53", add: "map[]", remove: "map[]"},
		{want: "", add: "map[]", remove: "map[10.1.1.2:[TCP *:80 to 8080 UDP *:53 to 53]]"},
		{want: "TCP *:80 to 81, UDP *:53 to 53", add: "map[10.1.1.2:[TCP *:80 to 81]]", remove: "map[10.1.1.2:[TCP *:80 to 8080]]"},
		{want: "TCP *:80 to 8080, UDP *:53 to 53, UDP *:80 to 80", add: "map[10.1.1.2:[UDP *:80 to 80]]", remove: "map[]"},
		{want: "TCP 127.0.0.1:90 to 90", add: "map[10.1.1.2:[TCP 127.0.0.1:90 to 90]]", remove: "map[10.1.1.2:[TCP *:80 to 8080 UDP *:53 to 53]]"},
		{want: "TCP *:90 to 90", err: "port mapping TCP *:90 to 90: the pod with address 10.1.1.3 has TCP 10.0.0.2:90 to 90"},
		{want: "TCP 10.0.0.2:90 to 1", err: "the pod with address 10.1.1.3 has"},
		{want: "TCP *:70 to 1, TCP *:80 to 8080, UDP *:53 to 53", add: "map[10.1.1.2:[TCP *:70 to 1]]", remove: "map[10.1.1.4:[TCP *:70 to 70]]"},
		{want: "TCP *:60 to 1, TCP 10.0.0.2:60 to 1", err: "are in conflict"},
		{want: "ICMP *:60 to 1", err: `protocol "ICMP" is none of TCP, UDP and SCTP`},
		{want: "TCP *:0 to 1", err: "a port is 0"},
		{want: "TCP *:1 to 0", err: "a port is 0"},
	} {
		var want []string
		if test.want != "" {
			want = strings.Split(test.want, ", ")
		}
		add, remove, err := published.plan(pod, parseMappings(t, want...), func(addr netip.Addr) bool { return addr == dead })
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v; want %q", test.want, err, test.err)
			}
			continue
		}
		if err != nil || fmt.Sprint(add) != test.add || fmt.Sprint(remove) != test.remove {
			t.Errorf("%s: add %v, remove %v, %v; want %s, %s", test.want, add, remove, err, test.add, test.remove)
		}
	}
	if _, _, err := published.plan(pod, []PortMapping{{Protocol: "TCP", HostIP: netip.MustParseAddr("::1"), HostPort: 1, ContainerPort: 1}}, nil); err == nil {
		t.Error("an IPv6 host address is accepted")
	}
}

func TestApply(t *testing.T) {
	pod := netip.MustParseAddr("10.1.1.2")
	published := mappings{}
	published.apply(mappings{pod: parseMappings(t, "TCP *:80 to 8080", "UDP *:53 to 53")}, nil)
	published.apply(mappings{pod: parseMappings(t, "TCP *:81 to 81")}, mappings{pod: parseMappings(t, "TCP *:80 to 8080")})
	if got := fmt.Sprint(published); got != "map[10.1.1.2:[UDP *:53 to 53 TCP *:81 to 81]]" {
		t.Error(got)
	}
	published.apply(nil, mappings{pod: parseMappings(t, "TCP *:81 to 81", "UDP *:53 to 53")})
	if len(published) != 0 {
		t.Error(published)
	}
}
