// Package fakecri is a container runtime that runs nothing: sandboxes and containers are records in memory, which change by the calls of
// the CRI and by what a test makes happen (Exit, Fail, Crash ...). It takes its time from a clock, sends CRI events, and keeps a journal of
// the calls that change something, so that a test can compare it.
package fakecri

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/runtime"
)

var _ runtime.Service = (*Runtime)(nil)

// Runtime is the fake. Make it with New.
type Runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer

	clock clock.Clock

	mu         sync.Mutex
	seq        int
	sandboxes  []*sandbox
	containers []*container
	images     map[string]*cri.Image
	failures   map[string]error
	listeners  map[chan *cri.ContainerEventResponse]bool
	journal    []string
	exec       func(ctx context.Context, container string, cmd []string) (stdout string, code int32, err error)
	ignoreTerm map[string]bool
	delays     map[string]time.Duration
	memory     map[string]uint64
	written    map[string]uint64
	processes  map[string]uint64
}

type sandbox struct {
	id     string
	config *cri.PodSandboxConfig
	state  cri.PodSandboxState
	ip     string
	made   time.Time
}

type container struct {
	status  *cri.ContainerStatus
	sandbox *sandbox
	config  *cri.ContainerConfig
	killed  chan struct{}
}

// New makes a runtime without anything in it.
func New(c clock.Clock) *Runtime {
	return &Runtime{
		clock: c, images: map[string]*cri.Image{}, failures: map[string]error{}, listeners: map[chan *cri.ContainerEventResponse]bool{},
		ignoreTerm: map[string]bool{}, delays: map[string]time.Duration{}, memory: map[string]uint64{}, written: map[string]uint64{}, processes: map[string]uint64{},
	}
}

// AddImage makes an image present.
func (r *Runtime) AddImage(name string) *cri.Image {
	r.mu.Lock()
	defer r.mu.Unlock()
	image := &cri.Image{Id: "sha256:" + name, RepoTags: []string{name}, RepoDigests: []string{name + "@sha256:0"}, Size: 1000}
	r.images[name] = image
	return image
}

// Fail lets a method fail from now on; nil lets it work again. The key is the method's name, or the method and a container's, pod's or
// image's name after a slash.
func (r *Runtime) Fail(method string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures[method] = err
}

// Delay lets a method take time.
func (r *Runtime) Delay(method string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays[method] = d
}

// IgnoreTerm lets a container go on until it is killed.
func (r *Runtime) IgnoreTerm(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ignoreTerm[name] = true
}

// OnExec answers ExecSync.
func (r *Runtime) OnExec(f func(ctx context.Context, container string, cmd []string) (stdout string, code int32, err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exec = f
}

// Exit ends the running container of this pod and name by itself.
func (r *Runtime) Exit(pod, name string, code int32, reason string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.config.Metadata.Name == name && c.sandbox.config.Metadata.Name == pod && c.status.State == cri.ContainerState_CONTAINER_RUNNING {
			r.end(c, code, reason)
			return nil
		}
	}
	return fmt.Errorf("pod %s has no running container %s", pod, name)
}

// KillSandbox takes the sandbox of a pod away, as a crash of its helper would.
func (r *Runtime) KillSandbox(pod string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sandboxes {
		if s.config.Metadata.Name == pod {
			r.stopSandbox(s)
		}
	}
}

// Journal returns the calls that changed something, and forgets them.
func (r *Runtime) Journal() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.journal
	r.journal = nil
	return j
}

// Containers returns the names of the containers in this state, as pod/container, sorted.
func (r *Runtime) Containers(state cri.ContainerState) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.containers {
		if c.status.State == state {
			out = append(out, c.sandbox.config.Metadata.Name+"/"+c.config.Metadata.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Config returns the configuration with which the newest container of that name was made, nil when there is none.
func (r *Runtime) Config(pod, name string) *cri.ContainerConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range slices.Backward(r.containers) {
		if c.config.Metadata.Name == name && c.sandbox.config.Metadata.Name == pod {
			return c.config
		}
	}
	return nil
}

// begin waits as the method is told to, and says how it fails.
func (r *Runtime) begin(ctx context.Context, method, name string) error {
	r.mu.Lock()
	delay := r.delays[method]
	r.mu.Unlock()
	if delay > 0 {
		t := r.clock.NewTimer(delay)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.failures[method]; err != nil {
		return err
	}
	return r.failures[method+"/"+name]
}

func (r *Runtime) note(format string, args ...any) {
	r.journal = append(r.journal, fmt.Sprintf(format, args...))
}

func (r *Runtime) nextID(prefix string) string {
	r.seq++
	return fmt.Sprintf("%s%d", prefix, r.seq)
}

func (r *Runtime) end(c *container, code int32, reason string) {
	if c.status.State != cri.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.status.State, c.status.ExitCode, c.status.FinishedAt = cri.ContainerState_CONTAINER_EXITED, code, r.clock.Now().UnixNano()
	c.status.Reason = reason
	if reason == "" {
		c.status.Reason = "Error"
		if code == 0 {
			c.status.Reason = "Completed"
		}
	}
	close(c.killed)
	r.send(c.sandbox, c.status.Id, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

func (r *Runtime) stopSandbox(s *sandbox) {
	for _, c := range r.containers {
		if c.sandbox == s {
			r.end(c, 137, "")
		}
	}
	if s.state == cri.PodSandboxState_SANDBOX_READY {
		s.state = cri.PodSandboxState_SANDBOX_NOTREADY
		r.send(s, s.id, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}
