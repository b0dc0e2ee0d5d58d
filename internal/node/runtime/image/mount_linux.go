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
// is kept in dir. The caller holds a Lease. target and dir are made if need be. With a mapping, files belong to the users of that namespace as they belong
// to the machine's in the image.
func (s *Store) Mount(image *Image, dir, target string, m *Mapping) error {
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, path := range []string{dir, work, target} {
		if err := os.MkdirAll(path, 0o711); err != nil {
			return fmt.Errorf("root file system: %w", err)
		}
	}
	if err := os.MkdirAll(upper, 0o755); err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	if err := os.Chmod(upper, 0o755); err != nil { // it is the container's /, whatever our umask is
		return fmt.Errorf("root file system: %w", err)
	}
	if m != nil {
		if err := os.Chown(upper, m.Root, m.Root); err != nil {
			return fmt.Errorf("root file system: %w", err)
		}
	}
	lower, done, err := s.lower(image, m, filepath.Join(dir, "lower"))
	if err != nil {
		return fmt.Errorf("root file system of image %s: %w", image.ID, err)
	}
	defer done()
	if len(lower) == 0 {
		return bindEmpty(upper, target)
	}
	if err := mountOverlay(lower, upper, work, target); err != nil {
		return fmt.Errorf("root file system of image %s at %s: %w", image.ID, target, err)
	}
	return nil
}

// MountReadOnly shows an image's files at target, which is made if need be, for those who want its content and not to run it. The caller holds a Lease.
func (s *Store) MountReadOnly(image *Image, target string, m *Mapping) error {
	if err := os.MkdirAll(target, 0o711); err != nil {
		return fmt.Errorf("image volume: %w", err)
	}
	lower, done, err := s.lower(image, m, target+".lower")
	if err != nil {
		return fmt.Errorf("image volume: %w", err)
	}
	defer done()
	empty := filepath.Join(s.root, "empty") // an overlay wants two layers at least
	if err := os.MkdirAll(empty, 0o755); err != nil {
		return fmt.Errorf("image volume: %w", err)
	}
	if len(lower) == 1 {
		lower = append(lower, empty)
	}
	if len(lower) == 0 {
		return bindEmpty(empty, target)
	}
	if err := mountOverlay(lower, "", "", target); err != nil {
		return fmt.Errorf("image volume of image %s at %s: %w", image.ID, target, err)
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
// is too little for the paths of some thirty layers. Older kernels get the old call. Without an upper directory the mount is read-only.
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
	options := [][2]string{{"source", "overlay"}}
	if upper != "" {
		options = append(options, [2]string{"upperdir", upper}, [2]string{"workdir", work})
	}
	for _, option := range options {
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
	options := "lowerdir=" + strings.Join(lower, ":")
	if upper != "" {
		options += ",upperdir=" + upper + ",workdir=" + work
	}
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
