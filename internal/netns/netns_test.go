package netns

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, test := range []struct {
		network, address string
		dial             bool
		want, wantErr    string
	}{
		{"tcp", "10.1.2.3:80", true, "10.1.2.3:80", ""},
		{"tcp4", "10.1.2.3:80", true, "10.1.2.3:80", ""},
		{"udp", "[fd00::1]:53", true, "[fd00::1]:53", ""},
		{"tcp", "[::ffff:10.1.2.3]:80", true, "10.1.2.3:80", ""},
		{"tcp", "[fe80::1%3]:80", true, "[fe80::1%3]:80", ""},
		{"tcp", ":80", false, ":80", ""},
		{"tcp", "0.0.0.0:0", false, "0.0.0.0:0", ""},
		{"tcp", ":80", true, "", "not an IP address"},
		{"tcp", "10.1.2.3:0", true, "", "port 0 can't be dialed"},
		{"tcp", "localhost:80", true, "", "names are not resolved"},
		{"tcp", "example.com:80", false, "", "names are not resolved"},
		{"tcp", "10.1.2.3:http", true, "", "not a number"},
		{"tcp", "10.1.2.3:65536", true, "", "not a number"},
		{"tcp", "10.1.2.3", true, "", "want IP:port"},
		{"tcp", "[fe80::1%eth0]:80", true, "", "by name"},
		{"tcp6", "10.1.2.3:80", true, "", "not an address of network tcp6"},
		{"udp4", "[fd00::1]:80", true, "", "not an address of network udp4"},
		{"unix", "/run/x.sock", true, "", "only tcp"},
		{"ip4:icmp", "10.1.2.3", true, "", "only tcp"},
	} {
		got, err := checkAddress(test.network, test.address, test.dial)
		switch {
		case test.wantErr == "" && (err != nil || got != test.want):
			t.Errorf("%s %s: %q, %v; want %q", test.network, test.address, got, err, test.want)
		case test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)):
			t.Errorf("%s %s: error %v; want one with %q", test.network, test.address, err, test.wantErr)
		}
	}
}

// What is let through to the net package is an address that needs no resolver.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"10.0.0.1:80", "[fd00::1]:53", ":80", "localhost:80", "[fe80::1%eth0]:1", "1:2:3:4", "[::ffff:1.2.3.4]:9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, address string) {
		for _, dial := range []bool{false, true} {
			got, err := checkAddress("tcp", address, dial)
			if err != nil {
				continue
			}
			host, _, err := net.SplitHostPort(got)
			if err != nil {
				t.Fatalf("%q became %q: %v", address, got, err)
			}
			if _, err := netip.ParseAddr(host); err != nil && (dial || host != "") {
				t.Fatalf("%q became %q, whose host is no IP address", address, got)
			}
		}
	})
}

func TestUnsupported(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("network namespaces are supported on Linux")
	}
	if _, err := Create(t.TempDir() + "/x"); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Create: %v", err)
	}
}
