package embedded

import (
	"context"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestLifeOfAContainer(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	config := containerConfig("main", "say", "hello", "complain", "alas", "exit", "3")
	id := f.create(pod, config)
	if got := f.status(id); got.State != cri.ContainerState_CONTAINER_CREATED || got.CreatedAt == 0 || got.StartedAt != 0 {
		t.Fatalf("created: %v", got)
	}
	f.start(id)
	got := f.wait(id)
	if got.State != cri.ContainerState_CONTAINER_EXITED || got.ExitCode != 3 || got.Reason != "Error" || got.StartedAt < got.CreatedAt || got.FinishedAt < got.StartedAt {
		t.Fatalf("exited: %v", got)
	}
	if log := f.log(id); log != "stdout F hello\nstderr F alas\n" && log != "stderr F alas\nstdout F hello\n" {
		t.Fatalf("log: %q", log)
	}
	if _, err := f.r.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: id}); err == nil {
		t.Fatal("a container was started twice")
	}
	second := f.run(pod, containerConfig("second", "say", "done"))
	if got := f.wait(second); got.ExitCode != 0 || got.Reason != "Completed" {
		t.Fatalf("second: %v", got)
	}
	for range 2 {
		if _, err := f.r.RemoveContainer(t.Context(), &cri.RemoveContainerRequest{ContainerId: id}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.r.ListContainers(t.Context(), &cri.ListContainersRequest{})
	if err != nil || len(list.Containers) != 1 || list.Containers[0].Id != second {
		t.Fatalf("%v, %v", list, err)
	}
}

func TestStartErrors(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	config := containerConfig("main")
	config.Command = []string{"/missing"}
	id := f.create(pod, config)
	_, err := f.r.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: id})
	if err == nil || !strings.Contains(err.Error(), "/missing") || !strings.Contains(err.Error(), "no such file or directory") {
		t.Fatalf("got %v", err)
	}
	if got := f.status(id); got.State != cri.ContainerState_CONTAINER_EXITED || got.ExitCode != 128 || got.Reason != "StartError" || got.Message == "" {
		t.Fatalf("status: %v", got)
	}
	config.Metadata.Name = "other"
	config.Image.Image = "missing:1"
	if _, err := f.r.CreateContainer(t.Context(), &cri.CreateContainerRequest{PodSandboxId: pod, Config: config}); err == nil || !strings.Contains(err.Error(), "docker.io/library/missing:1") {
		t.Fatalf("got %v", err)
	}
}

func TestStopWithGrace(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	polite := f.run(pod, containerConfig("polite", "term", "say", "up", "wait"))
	f.awaitLine(polite, "up")
	if _, err := f.r.StopContainer(t.Context(), &cri.StopContainerRequest{ContainerId: polite, Timeout: 20}); err != nil {
		t.Fatal(err)
	}
	if got := f.status(polite); got.ExitCode != 7 || !strings.HasSuffix(f.log(polite), "stdout F terminating\n") {
		t.Fatalf("polite: %v, %q", got, f.log(polite))
	}
	stubborn := f.run(pod, containerConfig("stubborn", "stubborn", "say", "up", "wait"))
	f.awaitLine(stubborn, "up")
	for range 2 {
		if _, err := f.r.StopContainer(t.Context(), &cri.StopContainerRequest{ContainerId: stubborn, Timeout: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.status(stubborn); got.ExitCode != 137 || got.Reason != "Error" {
		t.Fatalf("stubborn: %v", got)
	}
}

func TestMemoryLimitKills(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	limited := func(name string, args ...string) *cri.ContainerConfig {
		config := containerConfig(name, args...)
		config.Linux.Resources.MemoryLimitInBytes = 32 << 20
		return config
	}
	id := f.run(pod, limited("big", "allocate", "200", "wait"))
	if got := f.wait(id); got.Reason != "OOMKilled" || got.ExitCode != 137 {
		t.Fatalf("got %v", got)
	}
	// A child that is killed is its parent's business.
	id = f.run(pod, limited("parent", "child", "allocate", "200"))
	if got := f.wait(id); got.Reason != "Completed" || !strings.Contains(f.log(id), "signal: killed") {
		t.Fatalf("got %v, %q", got, f.log(id))
	}
}

func TestExecSync(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	id := f.run(pod, containerConfig("main", "wait"))
	run := func(ctx context.Context, timeout int64, args ...string) (*cri.ExecSyncResponse, error) {
		return f.r.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: id, Cmd: append([]string{"/worker"}, args...), Timeout: timeout})
	}
	got, err := run(t.Context(), 0, "say", "out", "complain", "err", "exit", "5")
	if err != nil || string(got.Stdout) != "out\n" || string(got.Stderr) != "err\n" || got.ExitCode != 5 {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := run(t.Context(), 1, "wait"); err == nil || !strings.Contains(err.Error(), "was not over after 1 s") {
		t.Fatalf("timeout: %v", err)
	}
	if _, err := f.r.ExecSync(t.Context(), &cri.ExecSyncRequest{ContainerId: id, Cmd: []string{"/missing"}}); err == nil || !strings.Contains(err.Error(), "/missing") {
		t.Fatalf("missing command: %v", err)
	}
	f.stop(id)
	if _, err := run(t.Context(), 0, "say", "x"); err == nil {
		t.Fatal("exec in a container that is over")
	}
}

func TestAdoptionAfterTheAgentWasKilled(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	going := f.run(pod, containerConfig("going", "count", "20ms"))
	ending := f.run(pod, containerConfig("ending", "term", "say", "up", "wait"))
	created := f.create(pod, containerConfig("created", "say", "late"))
	f.awaitLine(ending, "up")
	pid := f.pid(going)
	endingPID := f.pid(ending)
	if err := f.r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	terminate(t, endingPID) // while there is no agent
	f.awaitGone(endingPID)
	f.open()
	if got := f.wait(ending); got.ExitCode != 7 || got.FinishedAt == 0 {
		t.Fatalf("ended meanwhile: %v", got)
	}
	if got := f.status(going); got.State != cri.ContainerState_CONTAINER_RUNNING || f.pid(going) != pid {
		t.Fatalf("went on: %v", got)
	}
	f.start(created)
	if got := f.wait(created); got.ExitCode != 0 {
		t.Fatalf("created before: %v", got)
	}
	f.stop(going)
	if got := f.status(going); got.ExitCode != 137 {
		t.Fatalf("stopped: %v", got)
	}
	f.checkCount(going)
}

func TestAdoptionAfterTheHelperWasKilled(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	going := f.run(pod, containerConfig("going", "count", "10ms"))
	ending := f.run(pod, containerConfig("ending", "term", "say", "up", "wait"))
	f.awaitLine(ending, "up")
	pid := f.pid(going)
	f.killHelper(pod)
	terminate(t, f.pid(ending))
	if got := f.wait(ending); got.ExitCode != 7 && got.ExitCode != 255 {
		t.Fatalf("ended under another helper: %v", got)
	} else if got.ExitCode == 255 {
		t.Logf("this kernel does not tell the exit code: %s", got.Message)
	}
	if f.pid(going) != pid {
		t.Fatal("the container was restarted")
	}
	if got, err := f.r.ExecSync(t.Context(), &cri.ExecSyncRequest{ContainerId: going, Cmd: []string{"/worker", "say", "hi"}}); err != nil || string(got.Stdout) != "hi\n" {
		t.Fatalf("exec under another helper: %v, %v", got, err)
	}
	fresh := f.run(pod, containerConfig("fresh", "say", "new"))
	if got := f.wait(fresh); got.ExitCode != 0 {
		t.Fatalf("started under another helper: %v", got)
	}
	f.stop(going)
	if got := f.status(going); got.ExitCode != 137 {
		t.Fatalf("stopped: %v", got)
	}
	f.checkCount(going)
}
