package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"

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
	m.hugepages = findHugepages()
	m.kernel = unix.ByteSliceToString(name.Release[:])
	return m, nil
}

// diskUsage is the size and the free space of the file system at path.
func diskUsage(path string) (capacity, free int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, fmt.Errorf("file system of %s: %w", path, err)
	}
	return int64(fs.Blocks) * fs.Bsize, int64(fs.Bavail) * fs.Bsize, nil
}

// freeMemory is what the kernel could give to new processes without swapping.
func freeMemory() (int64, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kibi, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kibi << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo does not tell MemAvailable")
}

// findHugepages looks at what the kernel has set aside, of every size that it knows.
func findHugepages() map[int64]int64 {
	out := map[int64]int64{}
	dirs, _ := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*kB") // the pattern is well-formed
	for _, dir := range dirs {
		kibi := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(dir), "hugepages-"), "kB")
		size, err := strconv.ParseInt(kibi, 10, 64)
		count, countErr := strconv.ParseInt(firstLine(filepath.Join(dir, "nr_hugepages")), 10, 64)
		if err == nil && countErr == nil {
			out[size<<10] = count * size << 10
		}
	}
	return out
}

// freePIDs is how many more processes and threads the kernel would let the machine have.
func freePIDs() (int64, error) {
	most := int64(0)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		n, err := strconv.ParseInt(firstLine(file), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		if most == 0 || n < most {
			most = n
		}
	}
	fields := strings.Fields(firstLine("/proc/loadavg"))
	if len(fields) < 4 {
		return 0, errors.New("/proc/loadavg does not tell the number of processes")
	}
	_, total, _ := strings.Cut(fields[3], "/")
	running, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return most - running, nil
}
