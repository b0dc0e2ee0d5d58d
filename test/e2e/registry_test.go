package e2e

import (
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestImageFromRegistry: a pod's image is pulled from a registry, here one on loopback, and one that is not there is reported.
func TestImageFromRegistry(t *testing.T) {
	m := newMachine(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	tag, err := name.NewTag(host + "/team/hello:2")
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(filepath.Join(filepath.Dir(m.data), "hello.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	c := m.up()
	m.kubectl("run", "pulled", "--image", tag.String())
	m.wait("pod/pulled", "--for=condition=Ready")
	m.kubectl("run", "missing", "--image", host+"/team/nothing:1")
	m.wait("pod/missing", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff")
	c.stop()
}
