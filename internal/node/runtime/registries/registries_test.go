package registries

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func configure(t *testing.T, dir, registry, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, registry), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, registry, "hosts.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func describe(hosts []Host, own bool) string {
	var out []string
	for _, h := range hosts {
		out = append(out, fmt.Sprintf("%s resolve=%t skip=%t override=%t ca=%d header=%v", h.URL, h.Resolve, h.SkipVerify, h.OverridePath, len(h.CA), h.Header))
	}
	return strings.Join(append(out, fmt.Sprintf("own=%t", own)), "; ")
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	configure(t, dir, "docker.io", `
# a mirror, then the registry
server = "https://registry-1.docker.io" # the real one
skip_verify = false

[host."http://127.0.0.1:5000"]
  capabilities = ["pull",
    "resolve", # both
  ]
[host.'https://other.example.com/path']
  capabilities = ["pull"]
  override_path = true
  skip_verify = true
  ca = ["a.pem", '/b.pem']
  [host.'https://other.example.com/path'.header]
    x-key = "a \"quoted\" word"
`)
	configure(t, dir, "example.com_5000_", `server = "http://example.com:5000"`)
	configure(t, dir, "_default", `[host."plain.example.com"]`)
	for registry, want := range map[string]string{
		"docker.io": "http://127.0.0.1:5000 resolve=true skip=false override=false ca=0 header=map[]; " +
			"https://other.example.com/path resolve=false skip=true override=true ca=2 header=map[X-Key:[a \"quoted\" word]]; " +
			"https://registry-1.docker.io resolve=true skip=false override=false ca=0 header=map[]; own=false",
		"example.com:5000": "http://example.com:5000 resolve=true skip=false override=false ca=0 header=map[]; own=false",
		"elsewhere":        "https://plain.example.com resolve=true skip=false override=false ca=0 header=map[]; own=true",
		"../docker.io":     "own=true",
	} {
		hosts, own, err := Load(dir, registry)
		if got := describe(hosts, own); got != want || err != nil {
			t.Errorf("%s:\n%s, %v\nwant\n%s", registry, got, err, want)
		}
	}
	if hosts, own, err := Load(filepath.Join(dir, "nothing"), "docker.io"); len(hosts) > 0 || !own || err != nil {
		t.Errorf("without configuration: %v, %t, %v", hosts, own, err)
	}
}

func TestLoadErrors(t *testing.T) {
	for text, want := range map[string]string{
		`server = 3`:                             `line 1: a string, true, false or a list of strings is missing at "3"`,
		"\n[host.\"ftp://x\"]":                   `line 2: host "ftp://x" must be a URL`,
		"[host.\"http://x\"]\ncolour = \"red\"":  `line 2: "colour" is not known`,
		"[host.\"http://x\"]\ncapabilities=[]":   `without the capability pull is of no use`,
		`[servers]`:                              `line 1: table "servers" is not known`,
		`[[host]]`:                               `line 1: arrays of tables are not understood`,
		`skip_verify = true`:                     `server is not set`,
		`server = "a" b`:                         `line 1: unexpected "b"`,
		`server = "a`:                            `line 1: a string does not end`,
		"server = \"a\"\nserver = \"b\"":         `line 2: "server" is set twice`,
		`[host."http://x".header]`:               `must come after the host`,
		"[host.\"http://x\"]\nca = [\"a\" \"b\"": `line 2: a list must go on with , or end with ]`,
	} {
		dir := t.TempDir()
		configure(t, dir, "r", text)
		if _, _, err := Load(dir, "r"); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "registry r: ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestTransport(t *testing.T) {
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Host+r.URL.Path+" "+r.Header.Get("X-Key"))
	}))
	defer server.Close()
	u, err := url.Parse(server.URL + "/base/")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []Host{{URL: u, Header: http.Header{"X-Key": {"k"}}}, {URL: u, OverridePath: true}} {
		client := http.Client{Transport: h.Transport("registry.example.com", http.DefaultTransport)}
		for _, address := range []string{"https://registry.example.com/v2/a/manifests/1", server.URL + "/elsewhere"} {
			resp, err := client.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
	}
	want := fmt.Sprintf("[%[1]s/base/v2/a/manifests/1 k %[1]s/elsewhere  %[1]s/base/a/manifests/1  %[1]s/elsewhere ]", u.Host)
	if got := fmt.Sprint(seen); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("server = \"a\"\n[host.\"http://x\"]\ncapabilities = [\"pull\"]")
	f.Add("a = [\n'b', # c\n]\r\n[x.'y']\nz=true")
	f.Fuzz(func(t *testing.T, text string) {
		tables, err := parse(text)
		if err == nil && (len(tables) == 0 || len(tables[0].name) > 0) {
			t.Errorf("%q gives %v", text, tables)
		}
	})
}
