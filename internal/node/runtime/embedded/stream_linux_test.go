package embedded

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	clientexec "k8s.io/client-go/util/exec"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stream connects to a session's URL as kubectl's library does.
func stream(t *testing.T, address string, options remotecommand.StreamOptions) error {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: target.Host}, http.MethodPost, target)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return executor.StreamWithContext(ctx, options)
}

func TestExecSession(t *testing.T) {
	f := newFixture(t)
	id := f.run(f.pod(), containerConfig("main", "wait"))
	exec := func(tty bool, stdin io.Reader, args ...string) (string, string, error) {
		request := &cri.ExecRequest{ContainerId: id, Cmd: append([]string{"/worker"}, args...), Tty: tty, Stdin: stdin != nil, Stdout: true, Stderr: !tty}
		response, err := f.r.Exec(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		options := remotecommand.StreamOptions{Stdin: stdin, Stdout: &out, Tty: tty}
		if !tty {
			options.Stderr = &errs
		}
		err = stream(t, response.Url, options)
		return out.String(), errs.String(), err
	}
	out, errs, err := exec(false, nil, "say", "out", "complain", "err", "exit", "4")
	var exit clientexec.CodeExitError
	if !errors.As(err, &exit) || exit.Code != 4 || out != "out\n" || errs != "err\n" {
		t.Fatalf("%q %q %v", out, errs, err)
	}
	out, _, err = exec(false, strings.NewReader("one\ntwo\n"), "echo")
	if err != nil || out != "got one\ngot two\nend of input\n" {
		t.Fatalf("with input: %q %v", out, err)
	}
	out, _, err = exec(true, nil, "tty", "env", "TERM")
	if err != nil || out != "console: false\r\nxterm\r\n" {
		t.Fatalf("with a terminal: %q %v", out, err)
	}
	large := strings.Repeat("a line that is not short\n", 40_000)
	out, _, err = exec(false, strings.NewReader(large), "echo")
	if want := strings.ReplaceAll(large, "a line", "got a line") + "end of input\n"; err != nil || out != want {
		t.Fatalf("a megabyte: %d of %d bytes, %v", len(out), len(want), err)
	}
}

func TestAttachSession(t *testing.T) {
	f := newFixture(t)
	config := containerConfig("main", "echo", "exit", "2")
	config.Stdin, config.StdinOnce = true, true
	id := f.run(f.pod(), config)
	response, err := f.r.Attach(t.Context(), &cri.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = stream(t, response.Url, remotecommand.StreamOptions{Stdin: strings.NewReader("hello\n"), Stdout: &out, Stderr: &errs})
	if err != nil || out.String() != "got hello\nend of input\n" || errs.Len() != 0 {
		t.Fatalf("%q %q %v", out.String(), errs.String(), err)
	}
	if got := f.wait(id); got.ExitCode != 2 {
		t.Fatalf("got %v", got)
	}
	if log := f.log(id); log != "stdout F got hello\nstdout F end of input\n" {
		t.Fatalf("log %q", log)
	}
}

// sizeQueue gives sizes one by one.
type sizeQueue chan *remotecommand.TerminalSize

func (q sizeQueue) Next() *remotecommand.TerminalSize { return <-q }

func TestAttachToATerminal(t *testing.T) {
	f := newFixture(t)
	config := containerConfig("main", "size")
	config.Stdin, config.Tty = true, true
	id := f.run(f.pod(), config)
	f.eventually("output", func() bool { return strings.Contains(f.log(id), "watching") })
	response, err := f.r.Attach(t.Context(), &cri.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	queue := make(sizeQueue, 1)
	queue <- &remotecommand.TerminalSize{Width: 100, Height: 40}
	input, inputEnd := io.Pipe()
	defer inputEnd.Close()
	var out bytes.Buffer
	err = stream(t, response.Url, remotecommand.StreamOptions{Stdin: input, Stdout: &out, Tty: true, TerminalSizeQueue: queue})
	close(queue)
	if err != nil {
		t.Fatal(err)
	}
	f.wait(id)
	if log := f.log(id); log != "stdout F watching the size\r\nstdout F resized\r\n" {
		t.Fatalf("log %q", log)
	}
}

func TestPortForwardSession(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	id := f.run(pod, containerConfig("main", "serve", "8080", "say", "up", "wait"))
	f.awaitLine(id, "up")
	response, err := f.r.PortForward(t.Context(), &cri.PortForwardRequest{PodSandboxId: pod, Port: []int32{8080}})
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(response.Url)
	if err != nil {
		t.Fatal(err)
	}
	roundTripper, upgrader, err := spdy.RoundTripperFor(&rest.Config{Host: target.Host})
	if err != nil {
		t.Fatal(err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: roundTripper}, http.MethodPost, target)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- forwarder.ForwardPorts() }()
	<-ready
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, ports[0].Local, "pod"); got != "hello, pod\n" {
		t.Errorf("got %q", got)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
