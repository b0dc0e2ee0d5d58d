package image

import (
	"archive/tar"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// mirror makes the store ask these hosts for images of docker.io.
func mirror(t *testing.T, store *Store, text string) {
	t.Helper()
	dir := filepath.Join(store.registries, "docker.io")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestPullFromMirror(t *testing.T) {
	store, host := open(t), serveRegistry(t, "")
	image := imageOf(t, []entry{{name: "f", kind: tar.TypeReg}})
	digest := push(t, host+"/library/app:1", image)
	empty := serveRegistry(t, "")
	mirror(t, store, "server = \"http://127.0.0.1:1\"\n[host.\"http://"+empty+"\"]\n[host.\"http://"+host+"\"]")
	got, err := store.Pull(t.Context(), "app:1", PullOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Tags[0] != "docker.io/library/app:1" || got.Digests[0] != "docker.io/library/app@"+digest {
		t.Errorf("names %v %v: they are the registry's, not the mirror's", got.Tags, got.Digests)
	}
	_, err = store.Pull(t.Context(), "app:2", PullOptions{})
	for _, want := range []string{empty + ": ", host + ": ", "127.0.0.1:1: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want all that was tried in it: %s", err, want)
		}
	}
	// Who may not resolve tags is asked by digest only.
	mirror(t, store, "server = \"http://127.0.0.1:1\"\n[host.\"http://"+host+"\"]\ncapabilities = [\"pull\"]")
	if _, err := store.Pull(t.Context(), "app:1", PullOptions{}); err == nil || strings.Contains(err.Error(), host) {
		t.Errorf("by tag: %v", err)
	}
	if _, err := store.Pull(t.Context(), "app@"+digest, PullOptions{}); err != nil {
		t.Errorf("by digest: %v", err)
	}
}

func TestPullOverTLS(t *testing.T) {
	server := httptest.NewTLSServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "https://") + "/library/app:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, imageOf(t, []entry{{name: "f", kind: tar.TypeReg}}), remote.WithTransport(server.Client().Transport)); err != nil {
		t.Fatal(err)
	}
	store := open(t)
	table := "server = \"" + server.URL + "\"\n"
	mirror(t, store, table)
	if _, err := store.Pull(t.Context(), "app:1", PullOptions{}); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(store.registries, "docker.io", "ca.pem"), authority, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"ca = \"ca.pem\"", "skip_verify = true"} {
		mirror(t, store, table+more)
		if _, err := store.Pull(t.Context(), "app:1", PullOptions{}); err != nil {
			t.Errorf("%s: %v", more, err)
		}
	}
}
