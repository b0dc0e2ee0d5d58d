package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is a container of this runtime. record, config and state are guarded by Runtime.mu; op serialises start and removal.
type container struct {
	op     sync.Mutex
	record containerRecord
	config *cri.ContainerConfig
	image  image.Image
	// state has no phase before the container was started.
	state  protocol.ContainerState
	exited chan struct{} // closed when the container is over
	// pidfd stands for the container's first process while that runs; a helper that takes over gets the exit status through it.
	pidfd *os.File
	// user is who the container runs as, once it was started.
	user *cri.LinuxContainerUser
}

// startFailedCode is the exit code of a container whose command could not be run, as other runtimes have it.
const startFailedCode = 128

func containerName(sandbox string, m *cri.ContainerMetadata) string {
	return fmt.Sprintf("container %s (attempt %d) of pod sandbox %s", m.GetName(), m.GetAttempt(), sandbox)
}

func logPath(sandbox *cri.PodSandboxConfig, config *cri.ContainerConfig) string {
	if config.GetLogPath() == "" || sandbox.GetLogDirectory() == "" {
		return ""
	}
	return filepath.Join(sandbox.GetLogDirectory(), config.GetLogPath())
}

// CreateContainer notes what a container is to be, and takes a lease on its image's layers. Nothing runs yet.
func (r *Runtime) CreateContainer(_ context.Context, request *cri.CreateContainerRequest) (*cri.CreateContainerResponse, error) {
	s, err := r.sandbox(request.GetPodSandboxId())
	if err != nil {
		return nil, err
	}
	config := request.GetConfig()
	if config.GetMetadata() == nil || config.GetImage().GetImage() == "" {
		return nil, status.Error(codes.InvalidArgument, "container: config.metadata and config.image.image must be set")
	}
	found, err := r.config.Images.Get(config.Image.Image)
	if err != nil {
		return nil, status.Errorf(codes.NotFound, "container %s: image %q: %v", config.Metadata.Name, config.Image.Image, err)
	}
	encoded, err := encodeContainerConfig(config)
	if err != nil {
		return nil, err
	}
	if config, err = decodeContainerConfig(encoded); err != nil { // a copy: the caller keeps its own
		return nil, err
	}
	c := &container{config: config, image: found, exited: make(chan struct{}), record: containerRecord{
		ID: newID(), SandboxID: s.record.ID, Config: encoded, ImageID: found.ID, ImageRef: imageRef(&found), CreatedAt: r.config.Clock.Now().UTC(),
	}}
	name := containerName(s.record.ID, config.Metadata)
	if err := r.reserve(name, c.record.ID); err != nil {
		return nil, err
	}
	if err := r.enterContainer(s, c); err != nil {
		_ = r.clearContainer(c)
		r.mu.Lock()
		r.release(name, c.record.ID)
		r.mu.Unlock()
		return nil, err
	}
	r.announce(c.record.ID, cri.ContainerEventType_CONTAINER_CREATED_EVENT)
	return &cri.CreateContainerResponse{ContainerId: c.record.ID}, nil
}

// imageRef is what names the image's content beyond doubt: by a registry's digest if there is one.
func imageRef(found *image.Image) string {
	if len(found.Digests) > 0 {
		return found.Digests[0]
	}
	return found.ID
}

// imageUser is who uses an image, for people.
func imageUser(s *sandbox) string {
	return fmt.Sprintf("pod %s/%s", s.config.Metadata.GetNamespace(), s.config.Metadata.GetName())
}

func (r *Runtime) enterContainer(s *sandbox, c *container) error {
	dir := r.containerDir(c.record.ID)
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	if err := r.config.Images.Lease(c.record.ID, dir, imageUser(s), &c.image); err != nil {
		return err
	}
	if err := writeRecord(filepath.Join(dir, containerFile), &c.record); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.record.Ready {
		return status.Error(codes.FailedPrecondition, "the pod sandbox is not ready")
	}
	r.containers[c.record.ID] = c
	return nil
}

// StartContainer runs the container's command.
func (r *Runtime) StartContainer(_ context.Context, request *cri.StartContainerRequest) (*cri.StartContainerResponse, error) {
	c, err := r.container(request.GetContainerId())
	if err != nil {
		return nil, err
	}
	s, err := r.sandbox(c.record.SandboxID)
	if err != nil {
		return nil, err
	}
	c.op.Lock()
	defer c.op.Unlock()
	r.mu.Lock()
	fresh := c.state.Phase == "" && c.record.StartError == ""
	r.mu.Unlock()
	if !fresh {
		return nil, status.Errorf(codes.FailedPrecondition, "container %q was started already", c.config.Metadata.Name)
	}
	state, err := r.startContainer(s, c)
	if err != nil && r.ctx.Err() != nil {
		return nil, err // the next agent will know whether it runs
	}
	if err != nil {
		return nil, errors.Join(err, r.startFailed(c, err))
	}
	r.observe(s, state)
	return &cri.StartContainerResponse{}, nil
}

func (r *Runtime) rootfs(c *container) string {
	return filepath.Join(r.runDir(c.record.SandboxID), "rootfs", c.record.ID)
}

// startContainer starts the container and gives its state. It does not end with the caller's context: a start that is cut off would leave it unknown
// whether the container runs.
func (r *Runtime) startContainer(s *sandbox, c *container) (*protocol.ContainerState, error) {
	dir := r.containerDir(c.record.ID)
	if err := r.config.Images.Mount(&c.image, filepath.Join(dir, "rw"), r.rootfs(c), r.mapping(s)); err != nil {
		return nil, err
	}
	spec, err := r.spec(s, c)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if path := logPath(s.config, c.config); path != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
	}
	return r.callStart(s, c, &protocol.Request{Start: &protocol.StartRequest{
		ID: c.record.ID, Spec: encoded, LogPath: logPath(s.config, c.config), RecordDir: dir,
		Stdin: c.config.Stdin, StdinOnce: c.config.StdinOnce,
	}})
}

// callStart makes the call again if the helper was killed under it: the next helper has taken the container over if it ran, and has cleared it
// away if it did not.
func (r *Runtime) callStart(s *sandbox, c *container, request *protocol.Request) (*protocol.ContainerState, error) {
	for {
		reply, _, err := protocol.Call(r.ctx, s.socket, request)
		if err == nil {
			return reply.State, nil
		}
		if protocol.HasCode(err, protocol.Exists) {
			return &protocol.ContainerState{ID: c.record.ID}, nil // its state comes by the watch
		}
		var answered *protocol.Error
		if errors.As(err, &answered) || !r.isReady(s) {
			return nil, err
		}
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case <-r.config.Clock.After(callAgain):
		}
	}
}

// startFailed makes it known and durable that the container is over before it ran.
func (r *Runtime) startFailed(c *container, cause error) error {
	unmounted := r.unmount(c)
	r.mu.Lock()
	c.record.StartError, c.record.FailedAt = cause.Error(), r.config.Clock.Now().UTC()
	record := c.record
	r.failed(c)
	r.mu.Unlock()
	err := writeRecord(filepath.Join(r.containerDir(c.record.ID), containerFile), &record)
	r.announce(c.record.ID, cri.ContainerEventType_CONTAINER_STOPPED_EVENT)
	return errors.Join(unmounted, err)
}

// failed gives a container that could not be started its state. r.mu is held.
func (r *Runtime) failed(c *container) {
	c.state = protocol.ContainerState{
		ID: c.record.ID, Phase: protocol.Exited, FinishedAt: c.record.FailedAt, ExitCode: startFailedCode, Message: c.record.StartError,
	}
	close(c.exited)
}
