package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"k8s.io/klog/v2"
)

// adopt takes over what is on disk. It returns when the state of every container is known.
func (r *Runtime) adopt(ctx context.Context) error {
	unfinished, err := r.readSandboxes()
	if err != nil {
		return err
	}
	if err := r.readContainers(); err != nil {
		return err
	}
	var waits []chan struct{}
	for _, s := range r.sandboxes {
		if !s.record.Ready {
			continue
		}
		if s.record.Boot != r.boot {
			r.rebooted(s)
			continue
		}
		ready := make(chan struct{})
		waits = append(waits, ready)
		r.watch(s, ready)
	}
	for _, ready := range waits {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, s := range unfinished {
		if err := r.clearUnfinished(ctx, s); err != nil {
			return err
		}
	}
	return r.clearOrphans()
}

// readSandboxes reads the records, and gives apart those of sandboxes that were never complete.
func (r *Runtime) readSandboxes() (unfinished []*sandbox, err error) {
	entries, err := os.ReadDir(r.sandboxesDir())
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		id := entry.Name()
		s := &sandbox{socket: filepath.Join(r.runDir(id), protocol.SocketName)}
		err := readRecord(filepath.Join(r.sandboxDir(id), sandboxFile), &s.record)
		var torn *json.SyntaxError
		if errors.Is(err, os.ErrNotExist) || errors.As(err, &torn) {
			// Cut off while the first record was written, which comes before everything else; the later ones replace it as a whole.
			if err := os.RemoveAll(r.sandboxDir(id)); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("container runtime: %w", err)
		}
		if s.config, err = decodeSandboxConfig(s.record.Config); err != nil {
			return nil, fmt.Errorf("container runtime: %s: %w", r.sandboxDir(id), err)
		}
		if !s.record.Created {
			unfinished = append(unfinished, s)
			continue
		}
		r.sandboxes[id] = s
		r.names[sandboxName(s.config.Metadata)] = id
	}
	return unfinished, nil
}

func (r *Runtime) readContainers() error {
	entries, err := os.ReadDir(r.containersDir())
	if err != nil {
		return err
	}
	for _, entry := range entries {
		c, err := r.readContainer(entry.Name())
		if err != nil {
			return fmt.Errorf("container runtime: %w", err)
		}
		if c == nil || r.sandboxes[c.record.SandboxID] == nil {
			if err := r.clearForgotten(entry.Name(), c); err != nil {
				return err
			}
			continue
		}
		r.containers[c.record.ID] = c
		r.names[containerName(c.record.SandboxID, c.config.Metadata)] = c.record.ID
	}
	return nil
}

// readContainer reads a container's records. One without a record was cut off while it was made, or removed: there is none then.
func (r *Runtime) readContainer(id string) (*container, error) {
	dir := r.containerDir(id)
	c := &container{exited: make(chan struct{})}
	err := readRecord(filepath.Join(dir, containerFile), &c.record)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if c.config, err = decodeContainerConfig(c.record.Config); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if c.image, err = r.config.Images.Get(c.record.ImageID); err != nil {
		// The image was removed from the store. A container that runs needs it no more, one that does not cannot start.
		c.image = image.Image{ID: c.record.ImageID}
	}
	if c.record.StartError != "" {
		r.failed(c)
		return c, nil
	}
	err = readRecord(filepath.Join(dir, protocol.RecordName), &c.state)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	switch c.state.Phase {
	case protocol.Exited:
		close(c.exited)
	case protocol.Running:
		c.hold(false)
	}
	return c, nil
}

// clearForgotten removes what is left of a container that is not one any more.
func (r *Runtime) clearForgotten(id string, c *container) error {
	if c == nil {
		if err := os.RemoveAll(r.containerDir(id)); err != nil {
			return err
		}
		return r.config.Images.Release(id)
	}
	return r.clearContainer(c)
}

// rebooted accounts for a sandbox of a former boot: nothing of it runs.
func (r *Runtime) rebooted(s *sandbox) {
	s.record.Ready, s.record.Addresses = false, nil
	if err := r.save(s); err != nil {
		klog.FromContext(r.ctx).Error(err, "Could not record that a pod sandbox ended with the machine", "sandbox", s.record.ID)
	}
	for _, c := range r.containersOf(s.record.ID) {
		if !r.isRunning(c) {
			continue
		}
		state := r.lostState(c)
		state.Message = "the machine was restarted"
		r.observe(s, state)
	}
}

// clearUnfinished removes a sandbox whose making was cut off. Its helper may have started: it is known by its socket.
func (r *Runtime) clearUnfinished(ctx context.Context, s *sandbox) error {
	if s.record.Boot != r.boot {
		return os.RemoveAll(r.sandboxDir(s.record.ID))
	}
	return r.clearSandbox(ctx, s)
}

// clearOrphans removes directories of RunDir that belong to no sandbox, and root file systems that are mounted for no running container.
func (r *Runtime) clearOrphans() error {
	entries, err := os.ReadDir(r.config.RunDir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if r.sandboxes[entry.Name()] == nil && isSandboxID(entry.Name()) {
			if err := r.clearRunDir(entry.Name()); err != nil {
				return err
			}
		}
	}
	for _, c := range r.containers {
		if !r.isRunning(c) {
			if err := r.unmount(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// isSandboxID tells a sandbox's directory from what others may keep in RunDir.
func isSandboxID(name string) bool { return len(name) == 64 }
