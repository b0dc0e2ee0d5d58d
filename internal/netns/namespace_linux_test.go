package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// needRoot skips a test that makes namespaces where that is not allowed.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
}

// create makes a namespace that is gone after the test.
func create(t testing.TB, path string) *Namespace {
	t.Helper()
	ns, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ns.Close(), Delete(path)); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// identity tells one namespace from another.
func identity(t testing.TB, path string) string {
	t.Helper()
	link, err := os.Readlink(path)
	if err == nil {
		return link
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("net:[%d]", stat.Ino)
}

// threadsOutside checks that no thread of the process is in a namespace other than the one it began in.
func threadsOutside(t testing.TB) {
	t.Helper()
	home := identity(t, "/proc/self/ns/net")
	tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if at, err := os.Readlink(task); err == nil && at != home {
			t.Errorf("thread %s is in %s, the process in %s", task, at, home)
		}
	}
}

func TestCreateAdoptDelete(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "deep", "er", "ns")
	first := create(t, path)
	again := create(t, path)
	if first.Path() != path || again.Path() != path {
		t.Errorf("paths %s and %s, want %s", first.Path(), again.Path(), path)
	}
	var ids [2]string
	for i, ns := range []*Namespace{first, again} {
		if err := ns.Do(func() error { ids[i] = identity(t, threadNamespace); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if pinned := identity(t, path); ids[0] != pinned || ids[1] != pinned {
		t.Errorf("inside %v, pinned %s", ids, pinned)
	}
	if ids[0] == identity(t, "/proc/self/ns/net") {
		t.Error("the namespace is the process's own")
	}
	for range 2 {
		if err := Delete(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open after Delete: %v", err)
	}
	if err := first.Do(func() error { return nil }); err != nil {
		t.Errorf("an open namespace must outlive its pin: %v", err)
	}
	threadsOutside(t)
}

// A crash between making the file and mounting it leaves an empty file; one after a second mount leaves two.
func TestCrashRemains(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "ns")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Open of an empty file: %v", err)
	}
	create(t, path)
	if err := unix.Mount(threadNamespace, path, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := Delete(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Delete: %v", err)
	}
}

func TestForeignFiles(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "precious")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v", err)
	}
	if err := Delete(path); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Delete: %v", err)
	}
	if err := Delete(dir); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("Delete of a directory: %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "data" {
		t.Errorf("the file is %q, %v", data, err)
	}
}

func TestCreateAtOnce(t *testing.T) {
	needRoot(t)
	path := filepath.Join(t.TempDir(), "ns")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			ns, err := Create(path)
			if err != nil {
				t.Error(err)
				return
			}
			ns.Close()
		})
	}
	wg.Wait()
	if err := unix.Unmount(path, 0); err != nil {
		t.Fatal(err)
	}
	if pinned, err := isPinned(path); err != nil || pinned {
		t.Errorf("a second mount is at the path: %v, %v", pinned, err)
	}
}

func TestDo(t *testing.T) {
	needRoot(t)
	ns := create(t, filepath.Join(t.TempDir(), "ns"))
	want := errors.New("mine")
	if err := ns.Do(func() error { return want }); err != want {
		t.Errorf("Do: %v, want %v", err, want)
	}
	if err := ns.Do(func() error { runtime.Goexit(); return nil }); !errors.Is(err, errGone) {
		t.Errorf("Do of a function that ends its goroutine: %v", err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if err := ns.Do(func() error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	threadsOutside(t)
	if err := errors.Join(ns.Close(), ns.Close()); err != nil {
		t.Error(err)
	}
	if err := ns.Do(func() error { return nil }); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Do after Close: %v", err)
	}
}
