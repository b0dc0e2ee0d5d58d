package residency

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const sample = `00400000-07a51000 r-xp 00000000 fe:00 1234                               /usr/bin/a program
Size:             124228 kB
Private_Dirty:         8 kB
Anonymous:             0 kB
Swap:                  0 kB
VmFlags: rd ex mr mw me
07a51000-07b00000 rw-p 07651000 fe:00 1234                               /usr/bin/a program
Anonymous:             8 kB
Swap:                  4 kB
c000000000-c004000000 rw-p 00000000 00:00 0
Anonymous:         65536 kB
`

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader(sample))
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := (mapping{0x400000, 0x7a51000, "/usr/bin/a program", false, 0}); got[0] != want {
		t.Errorf("%+v, want %+v", got[0], want)
	}
	if want := (mapping{0x7a51000, 0x7b00000, "/usr/bin/a program", true, 12}); got[1] != want {
		t.Errorf("%+v, want %+v", got[1], want)
	}
	if got[2].path != "" || !got[2].writable {
		t.Errorf("memory without a file: %+v", got[2])
	}
	for _, bad := range []string{"Anonymous: 1 kB", "x-y r-xp 0 0 0 /a", sample + "Anonymous: x kB"} {
		if got, err := parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gives %+v", bad, got)
		}
	}
}

// resident is how much of the file is in memory in this process, in kB.
func resident(t *testing.T, path string) (kilobytes int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(smaps)) {
		fields := strings.Fields(line)
		if strings.Contains(fields[0], "-") {
			inside = strings.HasSuffix(strings.TrimSpace(line), path)
		}
		if inside && fields[0] == "Rss:" {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		}
	}
	return kilobytes
}

// mapFile maps a new file of 4 MiB and touches each of its pages.
func mapFile(t *testing.T, protection int) (path string, memory []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes.Repeat([]byte{7}, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err = syscall.Mmap(int(file.Fd()), 0, 4<<20, protection, syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	if bytes.Count(memory, []byte{7}) != len(memory) || resident(t, path) < 4<<10 {
		t.Fatalf("%d kB are resident after all was read", resident(t, path))
	}
	return path, memory
}

func TestDrop(t *testing.T) {
	path, memory := mapFile(t, syscall.PROT_READ)
	if err := drop(path); err != nil {
		t.Fatal(err)
	}
	if kept := resident(t, path); kept != 0 {
		t.Errorf("%d kB stay resident", kept)
	}
	if bytes.Count(memory, []byte{7}) != len(memory) {
		t.Error("what comes back is not the file")
	}
}

// TestDropKeepsWhatWasWritten: pages that differ from the file would be lost, also where the mapping cannot be written to any more.
func TestDropKeepsWhatWasWritten(t *testing.T) {
	for name, protect := range map[string]int{"writable": syscall.PROT_READ | syscall.PROT_WRITE, "read-only by now": syscall.PROT_READ} {
		path, memory := mapFile(t, syscall.PROT_READ|syscall.PROT_WRITE)
		memory[123456] = 9
		if err := syscall.Mprotect(memory, protect); err != nil {
			t.Fatal(err)
		}
		if err := drop(path); err != nil {
			t.Fatal(err)
		}
		if memory[123456] != 9 {
			t.Errorf("%s: what was written is lost", name)
		}
	}
}

func TestDropProgram(t *testing.T) {
	for range 3 {
		if err := DropProgram(); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample)
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parse(strings.NewReader(text))
	})
}
