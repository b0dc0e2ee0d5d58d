package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// mounts lists what is mounted in a container, and how the root file system must propagate for that. The pod's mounts come after the
// system's and replace those at the same place.
func (r *Runtime) mounts(s *sandbox, c *container) ([]specs.Mount, string, error) {
	privileged := c.config.GetLinux().GetSecurityContext().GetPrivileged()
	list := append(systemMounts(privileged), r.podFiles(s)...)
	propagation := ""
	for i, given := range c.config.Mounts {
		given, err := r.imageVolume(s, c, i, given)
		if err != nil {
			return nil, "", err
		}
		mount, err := bindMount(given)
		if err != nil {
			return nil, "", err
		}
		switch given.Propagation {
		case cri.MountPropagation_PROPAGATION_BIDIRECTIONAL:
			propagation = "rshared"
		case cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
			if propagation == "" {
				propagation = "rslave"
			}
		}
		list = slices.DeleteFunc(list, func(other specs.Mount) bool { return other.Destination == mount.Destination })
		list = append(list, mount)
	}
	// A mount must come before those inside of it.
	slices.SortStableFunc(list, func(a, b specs.Mount) int { return depth(a.Destination) - depth(b.Destination) })
	return list, propagation, nil
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}

// systemMounts are what every process expects of Linux.
func systemMounts(privileged bool) []specs.Mount {
	system := []string{"nosuid", "noexec", "nodev", "ro"}
	if privileged {
		system = system[:3]
	}
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "strictatime", "mode=755", "size=65536k"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{Destination: "/dev/mqueue", Type: "mqueue", Source: "mqueue", Options: []string{"nosuid", "noexec", "nodev"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: system},
		{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: append(slices.Clone(system), "relatime")},
	}
}

// podFiles are the files that the runtime makes for the pod, and its shared memory.
func (r *Runtime) podFiles(s *sandbox) []specs.Mount {
	dir := r.runDir(s.record.ID)
	shm := filepath.Join(dir, "shm")
	if !s.owns("ipc") {
		shm = "/dev/shm"
	}
	list := []specs.Mount{{Destination: "/dev/shm", Type: "bind", Source: shm, Options: []string{"rbind", "nosuid", "noexec", "nodev"}}}
	for name, destination := range map[string]string{"hostname": "/etc/hostname", "hosts": "/etc/hosts", "resolv.conf": "/etc/resolv.conf"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			list = append(list, specs.Mount{Destination: destination, Type: "bind", Source: filepath.Join(dir, name), Options: []string{"rbind", "rprivate"}})
		}
	}
	return list
}

// sharedMemory is the size of a pod's /dev/shm, as with other runtimes.
const sharedMemory = "mode=1777,size=65536k"

// makePodFiles writes the pod's files and mounts its shared memory.
func (r *Runtime) makePodFiles(s *sandbox) error {
	dir := r.runDir(s.record.ID)
	if s.owns("ipc") {
		shm := filepath.Join(dir, "shm")
		if err := os.Mkdir(shm, 0o700); err != nil {
			return err
		}
		if err := unix.Mount("shm", shm, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, sharedMemory); err != nil {
			return fmt.Errorf("shared memory: %w", err)
		}
	}
	hosts, resolv := []byte("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"), resolvConf(s.config.GetDnsConfig())
	if !s.owns("net") {
		if text, err := os.ReadFile("/etc/hosts"); err == nil {
			hosts = text
		}
	}
	if resolv == nil {
		text, err := os.ReadFile("/etc/resolv.conf")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		resolv = text
	}
	hostname := s.config.GetHostname()
	if hostname == "" {
		hostname, _ = os.Hostname()
	}
	for name, text := range map[string][]byte{"hosts": hosts, "resolv.conf": resolv, "hostname": []byte(hostname + "\n")} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, text, 0o644), os.Chmod(path, 0o644)); err != nil { // whatever our umask is
			return err
		}
	}
	return nil
}

// resolvConf is the resolver's configuration that the pod asks for; nil when it asks for none.
func resolvConf(dns *cri.DNSConfig) []byte {
	if dns == nil || len(dns.Servers)+len(dns.Searches)+len(dns.Options) == 0 {
		return nil
	}
	var text strings.Builder
	if len(dns.Searches) > 0 {
		fmt.Fprintf(&text, "search %s\n", strings.Join(dns.Searches, " "))
	}
	for _, server := range dns.Servers {
		fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	if len(dns.Options) > 0 {
		fmt.Fprintf(&text, "options %s\n", strings.Join(dns.Options, " "))
	}
	return []byte(text.String())
}

var propagations = map[cri.MountPropagation]string{
	cri.MountPropagation_PROPAGATION_PRIVATE:           "rprivate",
	cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER: "rslave",
	cri.MountPropagation_PROPAGATION_BIDIRECTIONAL:     "rshared",
}

func bindMount(given *cri.Mount) (specs.Mount, error) {
	if !filepath.IsAbs(given.ContainerPath) || !filepath.IsAbs(given.HostPath) {
		return specs.Mount{}, fmt.Errorf("mount %q of %q: both paths must be absolute", given.ContainerPath, given.HostPath)
	}
	source, err := filepath.EvalSymlinks(given.HostPath)
	if err != nil {
		return specs.Mount{}, fmt.Errorf("mount %s: %w", given.ContainerPath, err)
	}
	options := []string{"rbind", propagations[given.Propagation]}
	switch {
	case given.RecursiveReadOnly && !given.Readonly:
		return specs.Mount{}, fmt.Errorf("mount %s: recursive_read_only needs readonly", given.ContainerPath)
	case given.RecursiveReadOnly:
		options = append(options, "rro")
	case given.Readonly:
		options = append(options, "ro")
	default:
		options = append(options, "rw")
	}
	options = append(options, given.MountOptions...)
	return specs.Mount{
		Destination: filepath.Clean(given.ContainerPath), Type: "bind", Source: source, Options: options,
		UIDMappings: mountMappings(given.UidMappings), GIDMappings: mountMappings(given.GidMappings),
	}, nil
}

// addDevices gives the container its devices: those it names, or all of the machine's if it is privileged.
func addDevices(spec *specs.Spec, config *cri.ContainerConfig) error {
	if config.GetLinux().GetSecurityContext().GetPrivileged() {
		spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: true, Access: "rwm"}}
		return addTree(spec, "/dev", "/dev", "")
	}
	for _, device := range config.Devices {
		if err := addTree(spec, device.HostPath, device.ContainerPath, device.Permissions); err != nil {
			return fmt.Errorf("device %s: %w", device.HostPath, err)
		}
	}
	return nil
}

// ownDevices are directories and files of /dev that a container has instances of its own of.
var ownDevices = []string{"/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/console", "/dev/fd"}

// addTree adds a device, or all devices below a directory. Without permissions there is no rule to add, since all is allowed.
func addTree(spec *specs.Spec, source, target, permissions string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if slices.Contains(ownDevices, path) {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if entry.Type()&os.ModeDevice != 0 {
			relative, err := filepath.Rel(source, path)
			if err != nil {
				return err
			}
			return addDevice(spec, path, filepath.Join(target, relative), permissions)
		}
		return nil
	})
}

func addDevice(spec *specs.Spec, source, target, permissions string) error {
	var stat unix.Stat_t
	if err := unix.Stat(source, &stat); err != nil {
		return err
	}
	kind := "c"
	if stat.Mode&unix.S_IFMT == unix.S_IFBLK {
		kind = "b"
	}
	major, minor, mode := int64(unix.Major(stat.Rdev)), int64(unix.Minor(stat.Rdev)), os.FileMode(stat.Mode&0o7777)
	spec.Linux.Devices = append(spec.Linux.Devices, specs.LinuxDevice{
		Path: target, Type: kind, Major: major, Minor: minor, FileMode: &mode, UID: &stat.Uid, GID: &stat.Gid,
	})
	if permissions != "" {
		spec.Linux.Resources.Devices = append(spec.Linux.Resources.Devices, specs.LinuxDeviceCgroup{
			Allow: true, Type: kind, Major: &major, Minor: &minor, Access: permissions,
		})
	}
	return nil
}
