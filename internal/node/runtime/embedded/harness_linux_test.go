package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2/ktesting"
)

// patience bounds what a test waits for; on a quiet machine everything takes milliseconds.
const patience = 30 * time.Second

// workerArchive builds the tests' image once.
var workerArchive = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "worker-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "worker")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./testdata/worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the worker: %w: %s", err, output)
	}
	passwd, group := filepath.Join(dir, "passwd"), filepath.Join(dir, "group")
	err = errors.Join(
		os.WriteFile(passwd, []byte("root:x:0:0::/root:/bin/sh\nalice:x:1001:2001::/home/alice:/bin/sh\n"), 0o644),
		os.WriteFile(group, []byte("root:x:0:\nstaff:x:50:alice\nalice:x:2001:\n"), 0o644),
		os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Chmod(filepath.Join(dir, "tmp"), 0o777),
	)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	err = image.Build(&archive, image.Recipe{
		Tag:    "worker:1",
		Files:  map[string]string{"/worker": binary, "/etc/passwd": passwd, "/etc/group": group, "/tmp": filepath.Join(dir, "tmp")},
		Config: v1.Config{Entrypoint: []string{"/worker"}, Env: []string{"FROM=image", "BOTH=image"}},
	})
	return archive.Bytes(), err
})

// fixture is a runtime on directories of its own, which the test leaves as it found the machine.
type fixture struct {
	t      testing.TB
	config Config
	r      *Runtime
	logs   string
	pods   int
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	if helper, err := openHelper(""); errors.Is(err, ErrNoHelper) {
		t.Skip("the pod helper was not built: run `make build`")
	} else if err == nil {
		_ = helper.Close()
	}
	archive, err := workerArchive()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	store, err := image.Open(filepath.Join(root, "images"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	unique := fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())
	f := &fixture{t: t, logs: filepath.Join(root, "logs"), config: Config{
		Root:         filepath.Join(root, "runtime"),
		RunDir:       "/run/bayplan-test/" + unique,
		CgroupParent: "bayplan-test/" + unique,
		Images:       store,
	}}
	before := traces(unique)
	if len(before) > 0 {
		t.Fatalf("traces before the test: %v", before)
	}
	files := openFiles()
	f.open()
	t.Cleanup(func() {
		f.removeAll()
		f.eventually("all files are closed", func() bool { return openFiles() <= files })
		_ = os.Remove("/run/bayplan-test")
		if left := traces(unique); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if left, _ := filepath.Glob(filepath.Join(f.config.Root, "*", "*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		removeTestCgroups()
	})
	return f
}

// openFiles counts the descriptors of this process.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}

func removeTestCgroups() {
	m := &machine{}
	if err := m.findHierarchies(); err == nil {
		m.removeCgroups("bayplan-test")
	}
}

func (f *fixture) open() {
	f.t.Helper()
	ctx := context.Background()
	if t, ok := f.t.(*testing.T); ok {
		_, ctx = ktesting.NewTestContext(t)
	}
	r, err := New(ctx, f.config)
	if err != nil {
		f.t.Fatal(err)
	}
	f.r = r
}

// reopen is what a new agent does after the old one was killed.
func (f *fixture) reopen() {
	f.t.Helper()
	if err := f.r.Close(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.open()
}

func (f *fixture) removeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := f.r.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		f.t.Error(err)
		return
	}
	for _, s := range list.Items {
		if _, err := f.r.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			f.t.Error(err)
		}
	}
	if err := f.r.Close(ctx); err != nil {
		f.t.Error(err)
	}
}

// traces finds processes, mounts, cgroups and files of a test by its unique name.
func traces(unique string) []string {
	var found []string
	table, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.SplitSeq(string(table), "\n") {
		if strings.Contains(line, unique) {
			found = append(found, "mount: "+line)
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, path := range processes {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), unique) {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if len(command) == 0 {
				continue // a zombie: what is left of it is its parent's to reap, and the parent of an orphan is the machine's process 1
			}
			found = append(found, "process: "+path+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	for _, pattern := range []string{"/sys/fs/cgroup/bayplan-test/" + unique, "/sys/fs/cgroup/*/bayplan-test/" + unique, "/run/bayplan-test/" + unique} {
		paths, _ := filepath.Glob(pattern)
		found = append(found, paths...)
	}
	return found
}

// pod makes a sandbox and gives its id.
func (f *fixture) pod(change ...func(*cri.PodSandboxConfig)) string {
	f.t.Helper()
	config := f.podConfig(change...)
	response, err := f.r.RunPodSandbox(f.t.Context(), &cri.RunPodSandboxRequest{Config: config})
	if err != nil {
		f.t.Fatal(err)
	}
	return response.PodSandboxId
}

func (f *fixture) podConfig(change ...func(*cri.PodSandboxConfig)) *cri.PodSandboxConfig {
	f.pods++
	name := fmt.Sprintf("pod-%d", f.pods)
	config := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: "uid-" + name},
		Hostname:     name,
		LogDirectory: filepath.Join(f.logs, name),
		Labels:       map[string]string{"app": name},
		Linux:        &cri.LinuxPodSandboxConfig{CgroupParent: "/" + f.config.CgroupParent + "/burstable/pod" + name},
	}
	for _, c := range change {
		c(config)
	}
	return config
}

// containerConfig is a container that runs the worker with these arguments.
func containerConfig(name string, args ...string) *cri.ContainerConfig {
	return &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name},
		Image:    &cri.ImageSpec{Image: "worker:1"},
		Args:     args,
		LogPath:  name + ".log",
		Linux:    &cri.LinuxContainerConfig{Resources: &cri.LinuxContainerResources{}, SecurityContext: &cri.LinuxContainerSecurityContext{}},
	}
}

func (f *fixture) create(pod string, config *cri.ContainerConfig) string {
	f.t.Helper()
	response, err := f.r.CreateContainer(f.t.Context(), &cri.CreateContainerRequest{PodSandboxId: pod, Config: config})
	if err != nil {
		f.t.Fatal(err)
	}
	return response.ContainerId
}

func (f *fixture) start(id string) {
	f.t.Helper()
	if _, err := f.r.StartContainer(f.t.Context(), &cri.StartContainerRequest{ContainerId: id}); err != nil {
		f.t.Fatal(err)
	}
}

// run makes and starts a container.
func (f *fixture) run(pod string, config *cri.ContainerConfig) string {
	f.t.Helper()
	id := f.create(pod, config)
	f.start(id)
	return id
}

func (f *fixture) status(id string) *cri.ContainerStatus {
	f.t.Helper()
	response, err := f.r.ContainerStatus(f.t.Context(), &cri.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		f.t.Fatal(err)
	}
	return response.Status
}

// wait waits until a container is over.
func (f *fixture) wait(id string) *cri.ContainerStatus {
	f.t.Helper()
	c, err := f.r.container(id)
	if err != nil {
		f.t.Fatal(err)
	}
	select {
	case <-c.exited:
	case <-time.After(patience):
		f.t.Fatalf("container %s is not over: %v", id, f.status(id))
	}
	return f.status(id)
}

// output runs a container to its end and gives what it wrote, without the log's times.
func (f *fixture) output(pod string, config *cri.ContainerConfig) string {
	f.t.Helper()
	id := f.run(pod, config)
	f.wait(id)
	return f.log(id)
}

// log gives a container's log without its times.
func (f *fixture) log(id string) string {
	f.t.Helper()
	text, err := os.ReadFile(f.status(id).LogPath)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.SplitAfterSeq(string(text), "\n") {
		_, rest, _ := strings.Cut(line, " ")
		lines.WriteString(rest)
	}
	return lines.String()
}

func (f *fixture) stop(id string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if _, err := f.r.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id}); err != nil {
		f.t.Fatal(err)
	}
}

// eventually waits for something that happens in another process and is told by nothing.
func (f *fixture) eventually(what string, done func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("did not happen: %s", what)
		}
	}
}

func (f *fixture) awaitLine(id, line string) {
	f.t.Helper()
	f.eventually("a line "+line, func() bool { return strings.Contains(f.log(id), " F "+line+"\n") })
}

func (f *fixture) pid(id string) int {
	f.t.Helper()
	c, err := f.r.container(id)
	if err != nil {
		f.t.Fatal(err)
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return c.state.PID
}

func (f *fixture) awaitGone(pid int) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("the end of process %d", pid), func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		return err != nil
	})
}

func terminate(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// killHelper kills a pod's helper and waits until another has taken its place.
func (f *fixture) killHelper(pod string) {
	f.t.Helper()
	s, err := f.r.sandbox(pod)
	if err != nil {
		f.t.Fatal(err)
	}
	current := func() int {
		f.r.mu.Lock()
		defer f.r.mu.Unlock()
		return s.helperPID
	}
	old := current()
	if err := unix.Kill(old, unix.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.eventually("another helper", func() bool { return current() != old })
}

// checkCount checks that no line of a counting container was lost or came twice.
func (f *fixture) checkCount(id string) {
	f.t.Helper()
	next := 0
	for line := range strings.SplitSeq(strings.TrimSpace(f.log(id)), "\n") {
		if want := fmt.Sprintf("stdout F line %d", next); line != want {
			f.t.Fatalf("line %q, want %q", line, want)
		}
		next++
	}
	if next < 2 {
		f.t.Fatalf("only %d lines", next)
	}
}

// ask says a word to a port of the loopback and gives the answer.
func ask(t *testing.T, port uint16, word string) string {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintln(conn, word)
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
