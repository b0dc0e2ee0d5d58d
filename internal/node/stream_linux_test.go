package node

import (
	"bytes"
	"context"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/api"
)

// webSocketProtocol is the newest that runtimes' streaming servers speak by WebSocket; the API server translates newer ones to SPDY.
const webSocketProtocol = "v4.channel.k8s.io"

// TestRealExec runs commands in a container through the node API, as kubectl exec does by way of the API server: by WebSocket and by SPDY.
func TestRealExec(t *testing.T) {
	r := newReal(t)
	r.start()
	r.create(`
metadata: {name: p}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: "app:1", args: [wait]}]
`)
	r.await("p", "running", inPhase(v1.PodRunning))
	server := httptest.NewServer((&api.Server{
		Runtime: r.cri, Pods: r.node.pods.list, RootDir: r.root, Node: "n1", Clock: clock.RealClock{},
	}).Handler())
	defer server.Close()
	target, err := url.Parse(server.URL + "/exec/default/p/app?command=/app&command=print%3Dhello&command=exit%3D5&stdout=true&stderr=true")
	if err != nil {
		t.Fatal(err)
	}
	config := &restclient.Config{Host: server.URL}
	socket, err := remotecommand.NewWebSocketExecutorForProtocols(config, "GET", target.String(), webSocketProtocol)
	if err != nil {
		t.Fatal(err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", target)
	if err != nil {
		t.Fatal(err)
	}
	for name, executor := range map[string]remotecommand.Executor{"WebSocket": socket, "SPDY": spdy} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		var stdout, stderr bytes.Buffer
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "exit code 5") || stdout.String() != "hello\n" {
			t.Errorf("%s: %q %q, %v; want hello and exit code 5", name, stdout.String(), stderr.String(), err)
		}
	}
}
