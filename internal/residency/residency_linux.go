package residency

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// mapping is a part of the address space that holds pages of a file.
type mapping struct {
	begin, end uintptr
	path       string
	writable   bool
	// own is how much of it was written to by this process and is no longer what the file holds, in kB.
	own int
}

// DropProgram unmaps the pages of the running program that are as they are in its file.
func DropProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	return drop(program)
}

// drop unmaps the pages of the file at path that nobody wrote to.
func drop(path string) error {
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	defer file.Close()
	all, err := parse(file)
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range all {
		if m.path == path && !m.writable && m.own == 0 {
			errs = append(errs, m.drop())
		}
	}
	return errors.Join(errs...)
}

func (m mapping) drop() error {
	_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, syscall.MADV_DONTNEED)
	if errno != 0 {
		return fmt.Errorf("giving back %x-%x: %w", m.begin, m.end, errno)
	}
	return nil
}

// parse reads /proc/PID/smaps (proc(5)): a line for each mapping, then its figures in kB.
func parse(r io.Reader) ([]mapping, error) {
	var out []mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) == 3 && (fields[0] == "Anonymous:" || fields[0] == "Swap:"):
			kilobytes, err := strconv.Atoi(fields[1])
			if err != nil || len(out) == 0 {
				return nil, fmt.Errorf("smaps: %q", lines.Text())
			}
			out[len(out)-1].own += kilobytes
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			m, err := parseMapping(fields)
			if err != nil {
				return nil, fmt.Errorf("smaps: %q: %w", lines.Text(), err)
			}
			out = append(out, m)
		}
	}
	return out, lines.Err()
}

func parseMapping(fields []string) (mapping, error) {
	from, to, _ := strings.Cut(fields[0], "-")
	begin, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil {
		return mapping{}, err
	}
	end, err := strconv.ParseUint(to, 16, strconv.IntSize)
	return mapping{uintptr(begin), uintptr(end), strings.Join(fields[5:], " "), strings.Contains(fields[1], "w"), 0}, err
}
