package node

import (
	"fmt"
	goruntime "runtime"

	"golang.org/x/sys/unix"
)

func inspectMachine(root string) (machine, error) {
	m := machine{
		cpus: goruntime.NumCPU(), osImage: readOSImage(), resolv: readResolv(),
		machineID: firstLine("/etc/machine-id"), systemUUID: firstLine("/sys/class/dmi/id/product_uuid"), bootID: firstLine("/proc/sys/kernel/random/boot_id"),
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return m, fmt.Errorf("memory of the machine: %w", err)
	}
	m.memory = int64(info.Totalram) * int64(info.Unit)
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		return m, fmt.Errorf("file system of %s: %w", root, err)
	}
	m.disk = int64(fs.Blocks) * fs.Bsize
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, fmt.Errorf("kernel of the machine: %w", err)
	}
	m.kernel = unix.ByteSliceToString(name.Release[:])
	return m, nil
}
