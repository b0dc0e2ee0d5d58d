package pod

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The helper as a whole needs root and containers: the tests of package embedded drive it. Here are the parts that do not.

func newPod(t *testing.T) *Pod {
	t.Helper()
	p := &Pod{config: &protocol.PodConfig{SandboxID: "s", Dir: t.TempDir()}, now: time.Now, containers: map[string]*container{}, watchers: map[*watcher]struct{}{}}
	p.reaper.init()
	return p
}

func TestRecordsAreReplacedAsAWhole(t *testing.T) {
	dir := t.TempDir()
	for code := range 3 {
		want := &protocol.ContainerState{ID: "c", Phase: protocol.Exited, ExitCode: code, StartedAt: time.Unix(1, 2).UTC()}
		if err := writeRecord(dir, want); err != nil {
			t.Fatal(err)
		}
		got, err := readRecord(dir)
		if err != nil || *got != *want {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if err := writeRecord(filepath.Join(dir, "missing"), &protocol.ContainerState{ID: "c"}); err == nil || !strings.Contains(err.Error(), "record of container c") {
		t.Errorf("got %v", err)
	}
}

func TestWaitCode(t *testing.T) {
	for status, want := range map[unix.WaitStatus]int{0: 0, 3 << 8: 3, 255 << 8: 255, 9: 137, 15: 143, 0x80 | 11: 139} {
		if got := waitCode(status); got != want {
			t.Errorf("status %#x is %d, want %d", uint32(status), got, want)
		}
	}
}

func TestTheReaperSparesWhatIsWaitedFor(t *testing.T) {
	p := newPod(t)
	start := func() *exec.Cmd {
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Skipf("no child to reap: %v", err)
		}
		return cmd
	}
	owned := start()
	p.reaper.own(owned.Process.Pid)
	for peekZombie() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.reaper.reap()
	if err := owned.Wait(); err != nil {
		t.Fatalf("the status of a child that is waited for was taken: %v", err)
	}
	p.reaper.disown(owned.Process.Pid)
	orphan := start()
	for peekZombie() == 0 {
		time.Sleep(time.Millisecond)
	}
	p.reaper.reap()
	if got := peekZombie(); got != 0 {
		t.Errorf("process %d was not reaped", got)
	}
	_ = orphan.Process.Release()
}

func TestMergeResources(t *testing.T) {
	old := &cgroups.Cgroup{Path: "/x", Resources: &cgroups.Resources{CpuShares: 2, CpuQuota: 3, Memory: 4, Unified: map[string]string{"a": "1"}}}
	quota, limit := int64(30), int64(40)
	got, err := mergeResources(old, &specs.LinuxResources{
		CPU: &specs.LinuxCPU{Quota: &quota}, Memory: &specs.LinuxMemory{Limit: &limit}, Unified: map[string]string{"b": "2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.CpuShares != 2 || got.CpuQuota != 30 || got.Memory != 40 || got.Unified["a"] != "1" || got.Unified["b"] != "2" {
		t.Errorf("got %+v", got)
	}
	if old.Resources.CpuQuota != 3 || len(old.Resources.Unified) != 1 {
		t.Errorf("the old ones were changed: %+v", old.Resources)
	}
}

// call asks a pod as a client does.
func call(t *testing.T, p *Pod, request *protocol.Request) (*protocol.Reply, error) {
	t.Helper()
	reply, _, err := protocol.Call(t.Context(), filepath.Join(p.config.Dir, protocol.SocketName), request)
	return reply, err
}

func TestCalls(t *testing.T) {
	p := newPod(t)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(p.config.Dir, protocol.SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	p.listener = listener
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Serve() }()
	t.Cleanup(func() { _ = listener.Close(); <-done })

	p.containers["over"] = &container{state: protocol.ContainerState{ID: "over", Phase: protocol.Exited, ExitCode: 3}}
	p.containers["runs"] = &container{state: protocol.ContainerState{ID: "runs", Phase: protocol.Running}}
	for name, test := range map[string]struct {
		request *protocol.Request
		code    protocol.Code
		want    string
	}{
		"unknown call":         {&protocol.Request{}, protocol.Unsupported, "a version that does not know the call"},
		"no such container":    {&protocol.Request{Signal: &protocol.SignalRequest{ID: "none"}}, protocol.NotFound, "container none is not in pod sandbox s"},
		"container over":       {&protocol.Request{Signal: &protocol.SignalRequest{ID: "over"}}, protocol.NotRunning, "container over is not running"},
		"started already":      {&protocol.Request{Start: &protocol.StartRequest{ID: "over"}}, protocol.Exists, "was started already"},
		"spec is not one":      {&protocol.Request{Start: &protocol.StartRequest{ID: "new", Spec: []byte(`[]`)}}, protocol.Unknown, "spec of container new"},
		"removal of a running": {&protocol.Request{Remove: &protocol.RemoveRequest{ID: "runs"}}, protocol.Unknown, "container runs has not exited"},
		"quit of a running":    {&protocol.Request{Quit: &protocol.QuitRequest{}}, protocol.Unknown, "container runs still runs"},
		"nothing listens":      {&protocol.Request{Dial: &protocol.DialRequest{Port: 1}}, protocol.Unknown, "failed to connect to localhost:1 inside the pod"},
	} {
		_, err := call(t, p, test.request)
		if err == nil || !protocol.HasCode(err, test.code) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
	for range 2 {
		if reply, err := call(t, p, &protocol.Request{Remove: &protocol.RemoveRequest{ID: "over"}}); err != nil || !reply.Done {
			t.Errorf("removal: %+v, %v", reply, err)
		}
	}
}

func TestWatchTellsWhatIsAndWhatChanges(t *testing.T) {
	p := newPod(t)
	c := &container{state: protocol.ContainerState{ID: "c", Phase: protocol.Running}}
	p.containers["c"] = c
	w, hello := p.watch()
	if hello.Containers != 1 || len(p.takePending(w)) != 1 {
		t.Fatalf("got %+v", hello)
	}
	p.mu.Lock()
	for code := range 3 {
		c.state.ExitCode = code
		p.changed(c)
	}
	p.mu.Unlock()
	pending := p.takePending(w)
	if len(pending) != 3 || pending[0].ExitCode != 0 || pending[2].ExitCode != 2 {
		t.Errorf("changes were lost or told late: %+v", pending)
	}
	p.unwatch(w)
	p.changed(c)
	if len(p.takePending(w)) != 0 {
		t.Error("told to one who has left")
	}
}
