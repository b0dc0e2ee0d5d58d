package image

import (
	"strings"
	"testing"
)

func TestNormalize(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for ref, want := range map[string]string{
		"hello":                             "docker.io/library/hello:latest",
		"hello:1":                           "docker.io/library/hello:1",
		"docker.io/library/hello:1":         "docker.io/library/hello:1",
		"index.docker.io/library/x":         "docker.io/library/x:latest",
		"team/app":                          "docker.io/team/app:latest",
		"localhost/app:2":                   "localhost/app:2",
		"localhost:5000/app":                "localhost:5000/app:latest",
		"registry.k8s.io/pause:3.10":        "registry.k8s.io/pause:3.10",
		"hello:1@" + digest:                 "docker.io/library/hello@" + digest,
		"Hello":                             "",
		"":                                  "",
		"http://example.com/hello":          "",
		"hello:" + strings.Repeat("t", 200): "",
	} {
		got, err := Normalize(ref)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", ref, got, err, want)
		}
	}
}

func TestIsID(t *testing.T) {
	for ref, want := range map[string]bool{
		"sha256:abc": true, "sha256:": false, "abcdef012345": true, "abcdef01234": false, "hello:1": false,
		strings.Repeat("f", 64): true, strings.Repeat("f", 65): false, "sha256:xyz": false,
	} {
		if got := isID(ref); got != want {
			t.Errorf("%q: %t", ref, got)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	f.Add("hello:1")
	f.Add("localhost:5000/a/b@sha256:" + strings.Repeat("a", 64))
	f.Fuzz(func(t *testing.T, ref string) {
		first, err := Normalize(ref)
		if err != nil {
			return
		}
		if second, err := Normalize(first); err != nil || second != first {
			t.Errorf("%q gives %q, which gives %q, %v", ref, first, second, err)
		}
	})
}
