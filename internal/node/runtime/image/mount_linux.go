package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount puts a container's root file system together at target: the image's layers, and above them what the container writes, which
// is kept in dir. The caller holds a Lease. target and dir are made if need be.
func (s *Store) Mount(image *Image, dir, target string) error {
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, path := range []string{dir, work, target} {
		if err := os.MkdirAll(path, 0o711); err != nil {
			return fmt.Errorf("root file system: %w", err)
		}
	}
	if err := os.MkdirAll(upper, 0o755); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	lower := make([]string, 0, len(image.Layers))
	for i := len(image.Layers) - 1; i >= 0; i-- {
		lower = append(lower, s.layerFS(image.Layers[i]))
	}
	if len(lower) == 0 {
		return bindEmpty(upper, target)
	}
	if err := mountOverlay(lower, upper, work, target); err != nil {
		return fmt.Errorf("root file system of image %s at %s: %w", image.ID, target, err)
	}
	return nil
}

// bindEmpty is the root file system of an image without layers.
func bindEmpty(upper, target string) error {
	if err := unix.Mount(upper, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("root file system at %s: %w", target, err)
	}
	return nil
}

// mountOverlay names each lower directory on its own (Linux 6.5 and later), because the options of the old call must fit into one page, which
// is too little for the paths of some thirty layers. Older kernels get the old call.
func mountOverlay(lower []string, upper, work, target string) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return mountOverlayOld(lower, upper, work, target)
	}
	defer unix.Close(fs)
	for _, dir := range lower {
		if err := unix.FsconfigSetString(fs, "lowerdir+", dir); err != nil {
			return mountOverlayOld(lower, upper, work, target)
		}
	}
	for _, option := range [][2]string{{"upperdir", upper}, {"workdir", work}, {"source", "overlay"}} {
		if err := unix.FsconfigSetString(fs, option[0], option[1]); err != nil {
			return fmt.Errorf("overlay option %s=%s: %w", option[0], option[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	defer unix.Close(mount)
	return unix.MoveMount(mount, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func mountOverlayOld(lower []string, upper, work, target string) error {
	options := "lowerdir=" + strings.Join(lower, ":") + ",upperdir=" + upper + ",workdir=" + work
	if len(options) >= os.Getpagesize() {
		return fmt.Errorf("the paths of %d layers are too long for this kernel (Linux 6.5 takes them): use a shorter data directory", len(lower))
	}
	return unix.Mount("overlay", target, "overlay", 0, options)
}

// Unmount takes a root file system away. It is idempotent; what the container wrote stays in its dir.
func Unmount(target string) error {
	for {
		err := unix.Unmount(target, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unmount %s: %w", target, err)
		}
	}
}
