package embedded

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// helperFiles holds the helper's binary if the product was built with one; README.md keeps the folder in a fresh clone.
//
//go:embed helper
var helperFiles embed.FS

// ErrNoHelper says that this binary was built without the pod helper.
var ErrNoHelper = errors.New("this binary was built without the pod helper, which real nodes need: run `make build` (or runtime-helper/build.sh), or use simulated nodes (--sim-nodes)")

// helperBinary gives the helper as a file in memory that nobody can change any more, from which it is executed. libcontainer needs that: a container
// must not be able to overwrite the binary that enters other containers (CVE-2019-5736). With any other file it would make
// such a copy at each start of a container. All helpers share the memory, and keep it when this process ends.
func helperBinary(path string) (*os.File, error) {
	content, err := openHelper(path)
	if err != nil {
		return nil, err
	}
	defer content.Close()
	fd, err := unix.MemfdCreate("bayplan-pod", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all were executable
		fd, err = unix.MemfdCreate("bayplan-pod", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("pod helper: memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "bayplan-pod")
	if err := seal(file, content); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("pod helper: memory file: %w", err)
	}
	return file, nil
}

func openHelper(path string) (fs.File, error) {
	if path != "" {
		content, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("pod helper: %w", err)
		}
		return content, nil
	}
	content, err := helperFiles.Open("helper/bayplan-pod-linux-" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoHelper
	}
	return content, err
}

func seal(file *os.File, content io.Reader) error {
	if _, err := io.Copy(file, content); err != nil {
		return err
	}
	if err := file.Chmod(0o511); err != nil {
		return err
	}
	_, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	return err
}

// executable is the path by which a child of this process executes the file. It goes by this process's number, since in the child, before it
// executes, the descriptors may stand for other files.
func executable(file *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()) }
