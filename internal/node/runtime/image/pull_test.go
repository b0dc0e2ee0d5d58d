package image

import (
	"archive/tar"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serveRegistry serves an empty registry on the loopback, with a password if there is one, and gives its address.
func serveRegistry(t *testing.T, password string, broken ...string) string {
	t.Helper()
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); password != "" && got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodGet && slices.ContainsFunc(broken, func(digest string) bool { return strings.HasSuffix(r.URL.Path, digest) }) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, ref string, image v1.Image, options ...remote.Option) string {
	t.Helper()
	tag, err := name.NewTag(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image, options...); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func TestPull(t *testing.T) {
	store, host := open(t), serveRegistry(t, "")
	base := []entry{{name: "base", content: "1", kind: tar.TypeReg}}
	digest := push(t, host+"/team/app:1", imageOf(t, base, []entry{{name: "top", content: "22", kind: tar.TypeReg}}))
	image, err := store.Pull(t.Context(), host+"/team/app:1", PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if image.Size != 3 || len(image.Layers) != 2 {
		t.Errorf("got %+v", image)
	}
	if diff := cmp.Diff([]string{host + "/team/app@" + digest}, image.Digests); diff != "" {
		t.Error(diff)
	}
	push(t, host+"/team/app:2", imageOf(t, base))
	other, err := store.Pull(t.Context(), host+"/team/app:2", PullOptions{})
	if err != nil || other.Layers[0] != image.Layers[0] {
		t.Errorf("the layer is not shared: %+v, %v", other, err)
	}
	again, err := store.Pull(t.Context(), host+"/team/app@"+digest, PullOptions{})
	if err != nil || again.ID != image.ID {
		t.Errorf("by digest: %+v, %v", again, err)
	}
	if got, err := store.Get(host + "/team/app@" + digest); err != nil || got.ID != image.ID {
		t.Errorf("found by digest: %+v, %v", got, err)
	}
	if _, layers, _ := store.Usage(); layers != 2 {
		t.Errorf("%d layers, want 2", layers)
	}
}

func TestPullOfAnIndexTakesThisPlatform(t *testing.T) {
	store, host := open(t), serveRegistry(t, "")
	index := v1.ImageIndex(empty.Index)
	want := ""
	for _, arch := range []string{"s390x", platform().Architecture} {
		image := imageOf(t, []entry{{name: arch, kind: tar.TypeReg}})
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		id, err := image.ConfigName()
		if err != nil {
			t.Fatal(err)
		}
		want = id.String()
	}
	tag, err := name.NewTag(host + "/many:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, index); err != nil {
		t.Fatal(err)
	}
	image, err := store.Pull(t.Context(), host+"/many:1", PullOptions{})
	if err != nil || image.ID != want {
		t.Errorf("got %s, %v, want %s", image.ID, err, want)
	}
}

func TestPullErrors(t *testing.T) {
	store, host := open(t), serveRegistry(t, "secret")
	right := &authn.Basic{Username: "u", Password: "secret"}
	push(t, host+"/private:1", imageOf(t, []entry{{name: "f", kind: tar.TypeReg}}), remote.WithAuth(right))
	for name, test := range map[string]struct {
		ref  string
		auth authn.Authenticator
		want string
	}{
		"no password":    {host + "/private:1", nil, "401"},
		"wrong password": {host + "/private:1", &authn.Basic{Username: "u", Password: "guess"}, "401"},
		"no such tag":    {host + "/private:2", right, "MANIFEST_UNKNOWN"},
		"not a name":     {"UPPER CASE", nil, `image name "UPPER CASE": invalid reference format`},
		"nobody there":   {"127.0.0.1:1/app:1", nil, "connection refused"},
	} {
		_, err := store.Pull(t.Context(), test.ref, PullOptions{Auth: test.auth})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	if _, err := store.Pull(t.Context(), host+"/private:1", PullOptions{Auth: right}); err != nil {
		t.Errorf("right password: %v", err)
	}
}

// manyLayers is an image of n layers, with the digest of the one in the middle.
func manyLayers(t *testing.T, n int) (v1.Image, string) {
	t.Helper()
	var layers [][]entry
	for i := range n {
		layers = append(layers, []entry{{name: string(rune('a' + i)), content: strings.Repeat("x", i), kind: tar.TypeReg}})
	}
	image := imageOf(t, layers...)
	list, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := list[n/2].Digest()
	if err != nil {
		t.Fatal(err)
	}
	return image, digest.String()
}

func TestPullOfManyLayers(t *testing.T) {
	source, _ := manyLayers(t, 12)
	store, host := open(t), serveRegistry(t, "")
	push(t, host+"/many:1", source)
	image, err := store.Pull(t.Context(), host+"/many:1", PullOptions{})
	if err != nil || len(image.Layers) != 12 || image.Size != 66 {
		t.Errorf("got %+v, %v", image, err)
	}
}

func TestPullThatBreaksOffLeavesNoImage(t *testing.T) {
	source, middle := manyLayers(t, 12)
	store, host := open(t), serveRegistry(t, "", middle)
	push(t, host+"/many:1", source)
	if _, err := store.Pull(t.Context(), host+"/many:1", PullOptions{}); err == nil || !strings.Contains(err.Error(), "layer 6 of image") {
		t.Errorf("got %v", err)
	}
	if images, err := store.List(); len(images) != 0 || err != nil {
		t.Errorf("%v, %v", images, err)
	}
	if err := store.Collect(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.root, "*", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
