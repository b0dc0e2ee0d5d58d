// Package probe asks containers how they are: by a command, an HTTP request, a TCP connection or the gRPC health protocol, once (Once) or
// for as long as the container lives (Run), with the delays, periods and thresholds of a probe in a pod's manifest. The handlers of
// lifecycle hooks are the same requests, sent once.
//
// Connections are made by a dialer that is given, because pods are in another network namespace than the agent.
package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// Prober sends probes. All fields have to be set.
type Prober struct {
	Runtime interface {
		ExecSync(context.Context, *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error)
	}
	Dial  func(ctx context.Context, network, address string) (net.Conn, error)
	Clock clock.Clock
}

// Target is the container that is asked.
type Target struct {
	ID        string
	IP        string
	Container *v1.Container
	StartedAt time.Time
}

// Result is the outcome of one request.
type Result int

// The outcomes. A warning counts as success; an error says nothing about the container and counts for nothing.
const (
	Success Result = iota
	Warning
	Failure
	Errored
)

// maxOutput bounds what is kept of a container's answer.
const maxOutput = 10 * 1024

// errNoHandler means a probe or hook that asks for nothing.
var errNoHandler = errors.New("no handler is set")

// Once sends one request and waits for its answer at most for the probe's timeout.
func (p *Prober) Once(ctx context.Context, spec *v1.Probe, t Target) (Result, string) {
	timeout := time.Duration(max(1, spec.TimeoutSeconds)) * time.Second
	result, output, err := p.ask(ctx, spec, t, timeout)
	if err != nil {
		return Errored, err.Error()
	}
	return result, output[:min(len(output), maxOutput)]
}

func (p *Prober) ask(ctx context.Context, spec *v1.Probe, t Target, timeout time.Duration) (Result, string, error) {
	switch {
	case spec.Exec != nil:
		return p.exec(ctx, spec.Exec.Command, t, timeout)
	case spec.HTTPGet != nil:
		return p.http(ctx, spec.HTTPGet, t, timeout)
	case spec.TCPSocket != nil:
		return p.tcp(ctx, spec.TCPSocket, t, timeout)
	case spec.GRPC != nil:
		return p.grpc(ctx, spec.GRPC, t, timeout)
	}
	return Errored, "", errNoHandler
}

func (p *Prober) exec(ctx context.Context, command []string, t Target, timeout time.Duration) (Result, string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+time.Second)
	defer cancel()
	resp, err := p.Runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: t.ID, Cmd: command, Timeout: int64(timeout / time.Second)})
	if isTimeout(err) {
		return Failure, fmt.Sprintf("command timed out: %q timed out after %s", strings.Join(command, " "), timeout), nil
	}
	if err != nil {
		return Errored, "", err
	}
	output := string(resp.Stdout) + string(resp.Stderr)
	if resp.ExitCode != 0 {
		return Failure, output, nil
	}
	return Success, output, nil
}

func (p *Prober) tcp(ctx context.Context, action *v1.TCPSocketAction, t Target, timeout time.Duration) (Result, string, error) {
	address, err := address(action.Host, action.Port, t)
	if err != nil {
		return Errored, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := p.Dial(ctx, "tcp", address)
	if err != nil {
		return Failure, err.Error(), nil
	}
	conn.Close()
	return Success, "", nil
}

// address is where a probe goes: to the pod's address unless a host is named; ports may be named as in the container's spec.
func address(host string, port intstr.IntOrString, t Target) (string, error) {
	if host == "" {
		host = t.IP
	}
	number := port.IntValue()
	if port.Type == intstr.String && number == 0 {
		for _, p := range t.Container.Ports {
			if p.Name == port.StrVal {
				number = int(p.ContainerPort)
			}
		}
	}
	if number < 1 || number > 65535 {
		return "", fmt.Errorf("container %s has no port %q", t.Container.Name, port.String())
	}
	return net.JoinHostPort(host, fmt.Sprint(number)), nil
}
