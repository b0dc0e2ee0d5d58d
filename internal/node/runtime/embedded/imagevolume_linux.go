package embedded

import (
	"errors"
	"fmt"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageVolume turns a mount of an image's content into one of a directory, by mounting the image. Other mounts it gives back as they are.
func (r *Runtime) imageVolume(s *sandbox, c *container, index int, given *cri.Mount) (*cri.Mount, error) {
	ref := given.GetImage().GetImage()
	if ref == "" {
		return given, nil
	}
	found, err := r.config.Images.Get(ref)
	if err != nil {
		return nil, fmt.Errorf("mount %s: image %q: %w", given.ContainerPath, ref, err)
	}
	if err := r.config.Images.Lease(volumeLease(c, index), r.containerDir(c.record.ID), imageUser(s), &found); err != nil {
		return nil, fmt.Errorf("mount %s: %w", given.ContainerPath, err)
	}
	target := r.volumeDir(c, index)
	if err := r.config.Images.MountReadOnly(&found, target, r.mapping(s)); err != nil {
		return nil, fmt.Errorf("mount %s: %w", given.ContainerPath, err)
	}
	result := proto.CloneOf(given)
	result.Readonly, result.Image = true, nil
	result.HostPath, err = inside(target, given.ImageSubPath)
	if err != nil {
		return nil, fmt.Errorf("mount %s: sub-path %q of image %s: %w", given.ContainerPath, given.ImageSubPath, ref, err)
	}
	return result, nil
}

// inside resolves a path below a directory, and refuses one that leads out of it, also by a symbolic link.
func inside(dir, path string) (string, error) {
	if path == "" {
		return dir, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
}

func volumeLease(c *container, index int) string {
	return fmt.Sprintf("%s-volume-%d", c.record.ID, index)
}

func (r *Runtime) volumeDir(c *container, index int) string {
	return fmt.Sprintf("%s-volume-%d", r.rootfs(c), index)
}

// unmount takes a container's root file system and its image volumes away. It is idempotent.
func (r *Runtime) unmount(c *container) error {
	targets := []string{r.rootfs(c)}
	for i, mount := range c.config.GetMounts() {
		if mount.GetImage().GetImage() != "" {
			targets = append(targets, r.volumeDir(c, i))
		}
	}
	for _, target := range targets {
		if err := image.Unmount(target); err != nil {
			return err
		}
		if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// releaseLayers ends the leases that a container has on images.
func (r *Runtime) releaseLayers(c *container) error {
	err := r.config.Images.Release(c.record.ID)
	for i, mount := range c.config.GetMounts() {
		if mount.GetImage().GetImage() != "" {
			err = errors.Join(err, r.config.Images.Release(volumeLease(c, i)))
		}
	}
	return err
}
