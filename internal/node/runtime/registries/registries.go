// Package registries tells where the images of a registry are to be fetched: from mirrors, over plain HTTP, with other authorities than the machine's.
// It reads what containerd reads, a folder for each registry with a file hosts.toml:
//
//	DIR/docker.io/hosts.toml        for docker.io
//	DIR/example.com:5000/hosts.toml for that port alone (example.com_5000_ works too, where names must not have colons)
//	DIR/_default/hosts.toml         for all that have no folder
//
//	server = "https://registry-1.docker.io"   # after all others; without it the registry itself
//	[host."http://127.0.0.1:5000"]            # asked first, in the order of the file
//	  capabilities = ["pull", "resolve"]      # resolve: trusted to say what a tag is
//	  skip_verify = true
//	  ca = "ca.pem"
//	  override_path = true                    # the URL has the path of the API already
//	  [host."http://127.0.0.1:5000".header]
//	    authorization = "Basic ..."
package registries

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Host is a place where a registry's images can be fetched.
type Host struct {
	URL *url.URL
	// Resolve tells whether the host may say which image a tag is; otherwise it is asked by digest only.
	Resolve bool
	// SkipVerify takes any certificate; CA are files of authorities beside the machine's.
	SkipVerify bool
	CA         []string
	Header     http.Header
	// OverridePath tells that URL leads to the API itself, and not to the host whose /v2 it is.
	OverridePath bool
}

// Load gives the hosts that the configuration names for a registry, in the order in which they are to be tried. own is true when the registry itself is
// to be tried after them, as it is without any configuration.
func Load(dir, registry string) (hosts []Host, own bool, err error) {
	path, err := find(dir, registry)
	if path == "" || err != nil {
		return nil, true, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false, fmt.Errorf("registry %s: %w", registry, err)
	}
	tables, err := parse(string(text))
	if err != nil {
		return nil, false, fmt.Errorf("registry %s: %s: %w", registry, path, err)
	}
	hosts, server, err := build(tables, filepath.Dir(path))
	if err != nil {
		return nil, false, fmt.Errorf("registry %s: %s: %w", registry, path, err)
	}
	if server != nil {
		return append(hosts, *server), false, nil
	}
	return hosts, true, nil
}

// find gives the file that is for the registry, "" when there is none.
func find(dir, registry string) (string, error) {
	if dir == "" || registry != filepath.Base(registry) || strings.HasPrefix(registry, ".") {
		return "", nil
	}
	names := []string{registry}
	if host, port, ok := strings.Cut(registry, ":"); ok {
		names = append(names, host+"_"+port+"_")
	}
	for _, name := range append(names, "_default") {
		path := filepath.Join(dir, name, "hosts.toml")
		switch _, err := os.Stat(path); {
		case err == nil:
			return path, nil
		case !errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("registry %s: %w", registry, err)
		}
	}
	return "", nil
}

// build makes hosts of the tables; the server comes apart, for it is tried last wherever it stands.
func build(tables []table, dir string) (hosts []Host, server *Host, err error) {
	for _, t := range tables {
		switch {
		case len(t.name) == 0:
			if server, err = top(t, dir); err != nil {
				return nil, nil, err
			}
		case t.name[0] == "host" && len(t.name) == 2:
			h, err := host(t.name[1], t, dir)
			if err != nil {
				return nil, nil, err
			}
			hosts = append(hosts, *h)
		case t.name[0] == "host" && len(t.name) == 3 && t.name[2] == "header":
			if len(hosts) == 0 || hosts[len(hosts)-1].URL.String() != t.name[1] {
				return nil, nil, fmt.Errorf("line %d: the header of host %q must come after the host", t.line, t.name[1])
			}
			hosts[len(hosts)-1].Header = header(t)
		default:
			return nil, nil, fmt.Errorf("line %d: table %q is not known", t.line, strings.Join(t.name, "."))
		}
	}
	return hosts, server, nil
}

// top reads what stands before all tables: the server, and how it is to be spoken to.
func top(t table, dir string) (*Host, error) {
	address, set := t.values["server"]
	if !set {
		if len(t.values) > 0 {
			return nil, errors.New("what stands before the first host is about the server, but server is not set")
		}
		return nil, nil
	}
	delete(t.values, "server")
	if len(address.list) != 1 {
		return nil, fmt.Errorf("line %d: server must be one URL", address.line)
	}
	return host(address.list[0], t, dir)
}

func host(address string, t table, dir string) (*Host, error) {
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("line %d: host %q must be a URL such as https://mirror.example.com", t.line, address)
	}
	h := &Host{URL: u, Resolve: true}
	pull := true
	for name, v := range t.values {
		switch name {
		case "capabilities":
			pull, h.Resolve = slices.Contains(v.list, "pull"), slices.Contains(v.list, "resolve")
		case "skip_verify":
			h.SkipVerify = v.truth
		case "override_path":
			h.OverridePath = v.truth
		case "ca":
			for _, file := range v.list {
				if !filepath.IsAbs(file) {
					file = filepath.Join(dir, file)
				}
				h.CA = append(h.CA, file)
			}
		default:
			return nil, fmt.Errorf("line %d: %q is not known: capabilities, skip_verify, override_path and ca are", v.line, name)
		}
	}
	if !pull {
		return nil, fmt.Errorf("line %d: host %q without the capability pull is of no use", t.line, address)
	}
	return h, nil
}

func header(t table) http.Header {
	out := http.Header{}
	for name, v := range t.values {
		for _, text := range v.list {
			out.Add(name, text)
		}
	}
	return out
}

// TLS is how the host is to be spoken to; nil is as any other.
func (h *Host) TLS() (*tls.Config, error) {
	if !h.SkipVerify && len(h.CA) == 0 {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: h.SkipVerify}
	if len(h.CA) == 0 {
		return config, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, file := range h.CA {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("authority of registry host %s: %w", h.URL, err)
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authority of registry host %s: %s has no certificate", h.URL, file)
		}
	}
	config.RootCAs = pool
	return config, nil
}
