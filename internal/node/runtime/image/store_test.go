package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func open(t testing.TB, options ...Option) *Store {
	t.Helper()
	store, err := Open(filepath.Join(t.TempDir(), "images"), options...)
	if err != nil {
		t.Skipf("image stores need Linux: %v", err)
	}
	return store
}

// buildArchive builds a small image with one file.
func buildArchive(t testing.TB, tag, content string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := Build(&out, Recipe{
		Tag:    tag,
		Files:  map[string]string{"/bin/hello": file},
		Config: v1.Config{Entrypoint: []string{"/bin/hello"}, Env: []string{"A=b"}, ExposedPorts: map[string]struct{}{"80/tcp": {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func load(t testing.TB, store *Store, archive []byte) []string {
	t.Helper()
	names, err := store.Load(t.Context(), bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestLoadGetRemove(t *testing.T) {
	store := open(t)
	names := load(t, store, buildArchive(t, "hello:1", "one"))
	if diff := cmp.Diff([]string{"docker.io/library/hello:1"}, names); diff != "" {
		t.Fatal(diff)
	}
	image, err := store.Get("hello:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"docker.io/library/hello:1", "library/hello:1", "index.docker.io/library/hello:1", image.ID, image.ID[7:], image.ID[7:20]} {
		if other, err := store.Get(ref); err != nil || other.ID != image.ID {
			t.Errorf("Get(%q) = %s, %v", ref, other.ID, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(store.layerFS(image.Layers[0]), "bin/hello")); err != nil || string(got) != "one" {
		t.Errorf("unpacked file: %q, %v", got, err)
	}
	if image.Size != 3 || image.Config.Entrypoint[0] != "/bin/hello" {
		t.Errorf("image %+v", image)
	}
	if err := store.Remove("hello:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get("hello:1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after removal: %v", err)
	}
	if bytes, layers, err := store.Usage(); bytes != 0 || layers != 0 || err != nil {
		t.Errorf("usage after removal: %d bytes, %d layers, %v", bytes, layers, err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.root, "*", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestATagMoves(t *testing.T) {
	store := open(t)
	load(t, store, buildArchive(t, "hello:1", "one"))
	first, _ := store.Get("hello:1")
	load(t, store, buildArchive(t, "hello:1", "two"))
	second, _ := store.Get("hello:1")
	if first.ID == second.ID {
		t.Fatal("the tag did not move")
	}
	first, err := store.Get(first.ID)
	if err != nil || len(first.Tags) != 0 {
		t.Fatalf("the first image: %+v, %v", first, err)
	}
	load(t, store, buildArchive(t, "other:2", "two"))
	second, _ = store.Get("other:2")
	if diff := cmp.Diff([]string{"docker.io/library/hello:1", "docker.io/library/other:2"}, second.Tags); diff != "" {
		t.Fatal(diff)
	}
	if err := store.Remove("other:2"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Get("hello:1"); err != nil {
		t.Fatalf("one name of two was removed: %v", err)
	}
}

func TestTwoStoresOnOneDirectory(t *testing.T) {
	store := open(t)
	other, err := Open(store.root)
	if err != nil {
		t.Fatal(err)
	}
	if images, err := other.List(); len(images) != 0 || err != nil {
		t.Fatal(images, err)
	}
	done := make(chan error)
	for i := range 8 {
		s := store
		if i%2 == 0 {
			s = other
		}
		data := buildArchive(t, fmt.Sprintf("image:%d", i), "shared")
		go func() {
			_, err := s.Load(t.Context(), bytes.NewReader(data))
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*Store{store, other} {
		images, err := s.List()
		if err != nil || len(images) != 1 || len(images[0].Tags) != 8 {
			t.Errorf("%+v, %v", images, err)
		}
	}
}

func TestLeasesKeepLayers(t *testing.T) {
	store := open(t)
	load(t, store, buildArchive(t, "hello:1", "one"))
	image, _ := store.Get("hello:1")
	owner := filepath.Join(t.TempDir(), "container")
	if err := os.Mkdir(owner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.Lease("container", owner, "pod default/p", &image); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove("hello:1"); !errors.Is(err, ErrInUse) || err.Error() != "image hello:1 is in use by pod default/p: delete what uses it first" {
		t.Fatalf("removing an image in use: %v", err)
	}
	load(t, store, buildArchive(t, "hello:1", "two")) // the name goes over to another image
	if err := store.Remove(image.ID); !errors.Is(err, ErrInUse) {
		t.Fatalf("removing an image in use by its id: %v", err)
	}
	if err := store.Collect(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.layerFS(image.Layers[0])); err != nil {
		t.Fatalf("the layer of a running container was deleted: %v", err)
	}
	if err := os.Remove(owner); err != nil {
		t.Fatal(err)
	}
	if err := store.Remove(image.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.layerFS(image.Layers[0])); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the layer stayed after its container: %v", err)
	}
	if err := store.Lease("late", owner, "pod default/p", &image); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a lease on what is gone: %v", err)
	}
}

func TestCollectSparesIngestions(t *testing.T) {
	store := open(t)
	ingestion, err := store.ingest([]string{"aa"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(store.layerFS("aa"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.Collect(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.layerFS("aa")); err != nil {
		t.Fatal("a layer was collected while its image was being loaded")
	}
	_ = ingestion.file.Close() // as when the process is killed
	if err := store.Collect(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(store.root, "*", "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// entry is a member of a layer made by hand.
type entry struct {
	name, link, content string
	kind                byte
}

// imageOf makes an image of layers made by hand.
func imageOf(t testing.TB, layers ...[]entry) v1.Image {
	t.Helper()
	built := v1.Image(empty.Image)
	for _, entries := range layers {
		var content bytes.Buffer
		w := tar.NewWriter(&content)
		for _, e := range entries {
			header := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o755, Size: int64(len(e.content))}
			if err := w.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(w, e.content)
		}
		_ = w.Close()
		var err error
		built, err = mutate.AppendLayers(built, static.NewLayer(content.Bytes(), types.DockerUncompressedLayer))
		if err != nil {
			t.Fatal(err)
		}
	}
	return built
}

// layoutOf writes an image as an OCI archive.
func layoutOf(t testing.TB, image v1.Image, name string) []byte {
	t.Helper()
	dir := t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	w := tar.NewWriter(compressed)
	if err := w.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	_ = compressed.Close()
	return out.Bytes()
}

func TestLoadOCIArchive(t *testing.T) {
	store := open(t)
	image := imageOf(t, []entry{{name: "etc/motd", content: "hi", kind: tar.TypeReg}})
	names := load(t, store, layoutOf(t, image, "example.com/team/app:v2"))
	if diff := cmp.Diff([]string{"example.com/team/app:v2"}, names); diff != "" {
		t.Fatal(diff)
	}
	names = load(t, store, layoutOf(t, imageOf(t, []entry{{name: "x", kind: tar.TypeReg}}), ""))
	if len(names) != 1 || !strings.HasPrefix(names[0], "sha256:") {
		t.Fatalf("an image without a name is given as %v", names)
	}
}

func TestHostileLayersAreRefused(t *testing.T) {
	limits := WithLimits(Limits{Bytes: 1 << 20, Files: 100})
	many := make([]entry, 101)
	for i := range many {
		many[i] = entry{name: fmt.Sprintf("f%d", i), kind: tar.TypeReg}
	}
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"parent in a name":      {[]entry{{name: "../evil", content: "x", kind: tar.TypeReg}}, `the name "../evil" leads out of the image`},
		"parent in a hard link": {[]entry{{name: "a", link: "../../etc/passwd", kind: tar.TypeLink}}, `the name "../../etc/passwd" leads out of the image`},
		"too large":             {[]entry{{name: "big", content: strings.Repeat("0", 1<<20+1), kind: tar.TypeReg}}, "take more than the 1048576 bytes allowed"},
		"too many":              {many, "more than the 100 files allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, limits)
			_, err := store.add(t.Context(), imageOf(t, test.entries), []string{"docker.io/library/evil:1"}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %s", err, test.want)
			}
			if left, _ := filepath.Glob(filepath.Join(store.root, "*", "*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestSymlinksStayInside(t *testing.T) {
	store := open(t)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	image := imageOf(t, []entry{{name: "out", link: outside, kind: tar.TypeSymlink}, {name: "out/file", content: "x", kind: tar.TypeReg}})
	_, err := store.add(t.Context(), image, nil, nil)
	if entries, _ := os.ReadDir(outside); len(entries) != 0 {
		t.Fatalf("a layer wrote through its symbolic link to %v (%v)", entries, err)
	}
}

// lying gives other content than its digest says.
type lying struct{ v1.Layer }

func (l lying) Uncompressed() (io.ReadCloser, error) {
	content, err := l.Layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(content)
	text = bytes.Replace(text, []byte("good"), []byte("evil"), 1)
	return io.NopCloser(bytes.NewReader(text)), err
}

type lyingImage struct{ v1.Image }

func (l lyingImage) Layers() ([]v1.Layer, error) {
	layers, err := l.Image.Layers()
	for i := range layers {
		layers[i] = lying{layers[i]}
	}
	return layers, err
}

func TestContentMustHaveItsDigest(t *testing.T) {
	store := open(t)
	image := lyingImage{imageOf(t, []entry{{name: "f", content: "good", kind: tar.TypeReg}})}
	_, err := store.add(t.Context(), image, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "as the image's config says") {
		t.Fatalf("got %v", err)
	}
	if _, layers, _ := store.Usage(); layers != 0 {
		t.Fatal("the wrong layer stayed")
	}
}

func TestNoArchive(t *testing.T) {
	store := open(t)
	for name, text := range map[string]string{"nothing": "", "text": "hello\n", "truncated gzip": "\x1f\x8b"} {
		if _, err := store.Load(t.Context(), strings.NewReader(text)); err == nil {
			t.Errorf("%s was loaded", name)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(buildArchive(f, "hello:1", "one"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := open(t, WithLimits(Limits{Bytes: 1 << 20, Files: 100}))
		names, err := store.Load(t.Context(), bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, name := range names {
			if _, err := store.Get(name); err != nil {
				t.Errorf("%s was loaded and is not there: %v", name, err)
			}
		}
	})
}
