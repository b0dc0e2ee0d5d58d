package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// lower gives the directories of an image's layers, the highest first. With a mapping they are shown mapped below dir, by mounts that are only needed
// until an overlay is made of them: done takes them away.
func (s *Store) lower(image *Image, m *Mapping, dir string) (lower []string, done func(), err error) {
	for i := len(image.Layers) - 1; i >= 0; i-- {
		lower = append(lower, s.layerFS(image.Layers[i]))
	}
	if m == nil {
		return lower, func() {}, nil
	}
	namespace, err := os.Open(m.Namespace)
	if err != nil {
		return nil, nil, fmt.Errorf("user namespace: %w", err)
	}
	defer namespace.Close()
	done = func() { _ = unmountAll(dir) }
	for i, layer := range lower {
		lower[i] = filepath.Join(dir, strconv.Itoa(i))
		if err := mapLayer(layer, lower[i], int(namespace.Fd())); err != nil {
			return nil, nil, errors.Join(err, unmountAll(dir))
		}
	}
	return lower, done, nil
}

// mapLayer shows a directory at target with the users of a namespace.
func mapLayer(layer, target string, namespace int) error {
	if err := os.MkdirAll(target, 0o711); err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, layer, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("clone the mount of %s: %w", layer, err)
	}
	defer unix.Close(tree)
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP | unix.MOUNT_ATTR_RDONLY, Userns_fd: uint64(namespace)}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attr); err != nil {
		return fmt.Errorf("map the users of %s: user namespaces need a kernel and a file system with id-mapped mounts (Linux 5.19, ext4 or xfs): %w", layer, err)
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s at %s: %w", layer, target, err)
	}
	return nil
}

// unmountAll takes the mapped layers away. Their directories are removed one by one, so that nothing is removed that is still mounted.
func unmountAll(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there are none
	}
	var failed error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		failed = errors.Join(failed, Unmount(path), os.Remove(path))
	}
	return errors.Join(failed, os.Remove(dir))
}
