package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mountTmpfs mounts a tmpfs at dir, unless one is there already.
func mountTmpfs(dir string, size int64) error {
	mounted, err := isMountPoint(dir)
	if mounted || err != nil {
		return err
	}
	options := "mode=0777"
	if size > 0 {
		options += fmt.Sprintf(",size=%d", size)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount tmpfs at %s: %w", dir, err)
	}
	return nil
}

// mountHugepages mounts a hugetlbfs with pages of that size at dir, unless it is there already.
func mountHugepages(dir string, page *resource.Quantity, size int64, group *int64) error {
	mounted, err := isMountPoint(dir)
	if mounted || err != nil {
		return err
	}
	options := fmt.Sprintf("pagesize=%d,mode=0777", page.Value())
	if size > 0 {
		options += fmt.Sprintf(",size=%d", size)
	}
	if group != nil {
		options += fmt.Sprintf(",gid=%d", *group)
	}
	if err := unix.Mount("nodev", dir, "hugetlbfs", 0, options); err != nil {
		return fmt.Errorf("mount huge pages of %s at %s: %w", page, dir, err)
	}
	return nil
}

// mountSecret mounts a small tmpfs at dir, unless one is there already. A process that may not mount, as in tests, keeps on using the directory.
func mountSecret(dir string) error {
	mounted, err := isMountPoint(dir)
	if mounted || err != nil {
		return err
	}
	err = unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755")
	if err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mount tmpfs at %s: %w", dir, err)
	}
	return nil
}

// isMountPoint tells whether a file system of its own is mounted at dir.
func isMountPoint(dir string) (bool, error) {
	var own, parent unix.Stat_t
	if err := errors.Join(unix.Lstat(dir, &own), unix.Lstat(filepath.Dir(dir), &parent)); err != nil {
		return false, fmt.Errorf("look at %s: %w", dir, err)
	}
	return own.Dev != parent.Dev, nil
}

// unmountBelow unmounts all that is mounted at or below dir, the last mounts first.
func unmountBelow(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, m := range slices.Backward(mounts) {
		if err := unix.Unmount(m, unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", m, err)
		}
	}
	return nil
}

// mountsBelow are the mount points at or below dir in the order in which they were mounted.
func mountsBelow(dir string) ([]string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		point := unescape(fields[4])
		if point == real || strings.HasPrefix(point, real+"/") {
			out = append(out, point)
		}
	}
	return out, nil
}

// unescape turns the octal escapes of mountinfo back.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// resolve keeps a path beneath its root, whatever symbolic links are in it.
const resolve = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// pinSubPath opens sub beneath the volume, makes it when it isn't there, and binds what was opened to target: what a container does to
// the volume afterwards can't lead the mount elsewhere.
func pinSubPath(volume, sub, target string, group *int64) (string, error) {
	root, err := unix.Open(volume, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", volume, err)
	}
	defer unix.Close(root)
	fd, err := openBeneath(root, sub, group)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	if err := unmountBelow(target); err != nil {
		return "", err
	}
	if err := makeTarget(target, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return "", err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return "", fmt.Errorf("bind %s of %s to %s: %w", sub, volume, target, err)
	}
	return target, nil
}

func openBeneath(root int, sub string, group *int64) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := unix.Openat2(root, sub, how)
	if !errors.Is(err, unix.ENOENT) {
		return fd, describe(sub, err)
	}
	if err := makeBeneath(root, sub, group); err != nil {
		return -1, err
	}
	fd, err = unix.Openat2(root, sub, how)
	return fd, describe(sub, err)
}

func describe(sub string, err error) error {
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		return fmt.Errorf("%s leads out of the volume", sub)
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", sub, err)
	}
	return nil
}

// makeBeneath makes the directories of sub that aren't there, each opened beneath the volume before the next is made in it.
func makeBeneath(root int, sub string, group *int64) error {
	parent, owned := root, false
	defer func() {
		if owned {
			unix.Close(parent)
		}
	}()
	done := ""
	for _, name := range strings.Split(filepath.Clean(sub), "/") {
		done = filepath.Join(done, name)
		made := false
		if err := unix.Mkdirat(parent, name, 0o750); err == nil {
			made = true
		} else if !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %s: %w", done, err)
		}
		fd, err := unix.Openat2(root, done, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: resolve})
		if err != nil {
			return describe(done, err)
		}
		if owned {
			unix.Close(parent)
		}
		parent, owned = fd, true
		if made {
			if err := openUp(fd, group); err != nil {
				return fmt.Errorf("make %s: %w", done, err)
			}
		}
	}
	return nil
}

// openUp gives a new directory the rights of the volume's root.
func openUp(fd int, group *int64) error {
	mode := uint32(0o777)
	if group != nil {
		if err := unix.Fchown(fd, -1, int(*group)); err != nil {
			return err
		}
		mode |= unix.S_ISGID
	}
	return unix.Fchmod(fd, mode)
}

func makeTarget(target string, dir bool) error {
	if dir {
		return os.MkdirAll(target, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}
