package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bayplan/bayplan/internal/node/network"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeNetwork gives addresses and notes what it is asked.
type fakeNetwork struct {
	mu    sync.Mutex
	calls []string
	fail  error
}

func (n *fakeNetwork) SetUp(_ context.Context, id, path string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil || stat.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("%s is not a namespace: %x, %v", path, stat.Type, err)
	}
	n.calls = append(n.calls, "set up "+id)
	return []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fd00::3")}, n.fail
}

func (n *fakeNetwork) Publish(_ context.Context, id string, ports []network.PortMapping) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, fmt.Sprint("publish ", id, " ", ports))
	return n.fail
}

func (n *fakeNetwork) Shape(_ context.Context, id string, ingress, egress uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, fmt.Sprint("shape ", id, " ", ingress, " ", egress))
	return n.fail
}

func (n *fakeNetwork) TearDown(_ context.Context, id, _ string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, "tear down "+id)
	return nil
}

func TestSandboxNetwork(t *testing.T) {
	f := newFixture(t)
	network := &fakeNetwork{}
	f.r.config.Network, f.config.Network = network, network
	pod := f.pod()
	get := func() *cri.PodSandboxStatus {
		response, err := f.r.PodSandboxStatus(t.Context(), &cri.PodSandboxStatusRequest{PodSandboxId: pod})
		if err != nil {
			t.Fatal(err)
		}
		return response.Status
	}
	f.reopen()
	got := get()
	if got.State != cri.PodSandboxState_SANDBOX_READY || got.Network.Ip != "10.1.2.3" || got.Network.AdditionalIps[0].Ip != "fd00::3" {
		t.Fatalf("ready: %v", got)
	}
	for range 2 {
		if _, err := f.r.StopPodSandbox(t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: pod}); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(); got.State != cri.PodSandboxState_SANDBOX_NOTREADY || got.Network.Ip != "" {
		t.Fatalf("stopped: %v", got)
	}
	if diff := cmp.Diff([]string{"set up " + pod, "tear down " + pod}, network.calls); diff != "" {
		t.Fatal(diff)
	}
	if _, err := f.r.CreateContainer(t.Context(), &cri.CreateContainerRequest{PodSandboxId: pod, Config: containerConfig("late")}); status.Code(err) != codes.FailedPrecondition {
		t.Fatalf("a container in a stopped sandbox: %v", err)
	}
}

func TestSandboxThatCannotBeMadeLeavesNothing(t *testing.T) {
	f := newFixture(t)
	network := &fakeNetwork{fail: errors.New("no addresses are left")}
	f.r.config.Network = network
	config := f.podConfig()
	for range 2 { // the name is free again
		_, err := f.r.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: config})
		if err == nil || !strings.Contains(err.Error(), "network: no addresses are left") {
			t.Fatalf("got %v", err)
		}
	}
	if len(network.calls) != 4 {
		t.Errorf("calls: %v", network.calls)
	}
	// newFixture checks for traces.
}

func TestSandboxRefusals(t *testing.T) {
	f := newFixture(t)
	node := func(c *cri.PodSandboxConfig) {
		c.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}}
	}
	for name, test := range map[string]struct {
		change func(*cri.PodSandboxConfig)
		want   string
	}{
		"sysctl of the machine": {func(c *cri.PodSandboxConfig) { c.Linux.Sysctls = map[string]string{"vm.swappiness": "1"} }, "sysctl vm.swappiness is not one of a namespace"},
		"sysctl of the host's network": {func(c *cri.PodSandboxConfig) {
			node(c)
			c.Linux.Sysctls = map[string]string{"net.ipv4.ip_forward": "1"}
		}, "would change the node, because the pod uses the host's network"},
		"sysctl that is a path": {func(c *cri.PodSandboxConfig) { c.Linux.Sysctls = map[string]string{"net/../vm.swappiness": "1"} }, "is not a name"},
		"user namespace": {func(c *cri.PodSandboxConfig) {
			c.Linux.SecurityContext = &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{UsernsOptions: &cri.UserNamespace{Mode: cri.NamespaceMode_POD}}}
		}, "a user namespace needs one mapping of UIDs and the same of GIDs"},
		"no metadata": {func(c *cri.PodSandboxConfig) { c.Metadata = nil }, "config.metadata is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.r.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: f.podConfig(test.change)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	config := f.podConfig()
	if _, err := f.r.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: config}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.r.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: config}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the same sandbox twice: %v", err)
	}
}

func TestSysctlsAndResolvConf(t *testing.T) {
	f := newFixture(t)
	pod := f.pod(func(c *cri.PodSandboxConfig) {
		c.Linux.Sysctls = map[string]string{"net.ipv4.ip_local_port_range": "1024 2048", "kernel.shm_rmid_forced": "1"}
		c.DnsConfig = &cri.DNSConfig{Servers: []string{"10.0.0.10"}, Searches: []string{"a.local", "b.local"}, Options: []string{"ndots:5"}}
	})
	got := f.output(pod, containerConfig("main", "cat", "/proc/sys/net/ipv4/ip_local_port_range", "cat", "/proc/sys/kernel/shm_rmid_forced", "cat", "/etc/resolv.conf", "cat", "/etc/hostname"))
	want := "stdout F 1024\t2048\nstdout F 1\nstdout F search a.local b.local\nstdout F nameserver 10.0.0.10\nstdout F options ndots:5\nstdout F pod-1\n"
	if got != want {
		t.Errorf("got %q", got)
	}
}

func TestUnfinishedAndForgottenAreCleared(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	s, err := f.r.sandbox(pod)
	if err != nil {
		t.Fatal(err)
	}
	container := f.create(pod, containerConfig("main", "wait"))
	if err := f.r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// As if the agent had been killed before the sandbox was acknowledged.
	s.record.Created, s.record.Ready = false, false
	if err := f.r.save(s); err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(f.config.RunDir, strings.Repeat("0", 64))
	for _, dir := range []string{filepath.Join(stray, "ns"), f.r.containerDir("half"), f.r.sandboxDir("half")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	torn := f.r.sandboxDir("torn")
	if err := os.Mkdir(torn, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(torn, sandboxFile), []byte(`{"id":`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.open()
	for _, path := range []string{torn, stray, f.r.containerDir("half"), f.r.sandboxDir("half"), f.r.containerDir(container), f.r.sandboxDir(pod)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", path)
		}
	}
	if _, err := f.r.sandbox(pod); status.Code(err) != codes.NotFound {
		t.Errorf("the sandbox: %v", err)
	}
}

func TestAfterAReboot(t *testing.T) {
	f := newFixture(t)
	pod := f.pod()
	id := f.run(pod, containerConfig("main", "wait"))
	done := f.run(pod, containerConfig("done", "exit", "4"))
	f.wait(done)
	s, err := f.r.sandbox(pod)
	if err != nil {
		t.Fatal(err)
	}
	f.stop(id)
	if err := f.r.endSandbox(t.Context(), s); err != nil { // the machine ends it
		t.Fatal(err)
	}
	if err := f.r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	running := `{"id":"` + id + `","phase":"Running","pid":1,"startedAt":"2026-01-01T00:00:00Z","exitCode":0}`
	if err := os.WriteFile(filepath.Join(f.r.containerDir(id), "state.json"), []byte(running), 0o600); err != nil {
		t.Fatal(err)
	}
	var record sandboxRecord
	path := filepath.Join(f.r.sandboxDir(pod), sandboxFile)
	text, _ := os.ReadFile(path)
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	record.Boot = "another"
	if err := writeRecord(path, &record); err != nil {
		t.Fatal(err)
	}
	f.open()
	if got := f.wait(id); got.ExitCode != 255 || got.Message != "the machine was restarted" {
		t.Errorf("ran at the reboot: %v", got)
	}
	if got := f.status(done); got.ExitCode != 4 {
		t.Errorf("was over at the reboot: %v", got)
	}
	list, err := f.r.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{})
	if err != nil || list.Items[0].State != cri.PodSandboxState_SANDBOX_NOTREADY {
		t.Errorf("%v, %v", list, err)
	}
}

func TestListFilters(t *testing.T) {
	f := newFixture(t)
	first, second := f.pod(), f.pod()
	running := f.run(first, containerConfig("running", "wait"))
	created := f.create(second, containerConfig("created"))
	if _, err := f.r.StopPodSandbox(t.Context(), &cri.StopPodSandboxRequest{PodSandboxId: second}); err != nil {
		t.Fatal(err)
	}
	sandboxes := func(filter *cri.PodSandboxFilter) (ids []string) {
		list, err := f.r.ListPodSandbox(t.Context(), &cri.ListPodSandboxRequest{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list.Items {
			ids = append(ids, s.Id)
		}
		return ids
	}
	containers := func(filter *cri.ContainerFilter) (ids []string) {
		list, err := f.r.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: filter})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list.Containers {
			ids = append(ids, c.Id)
		}
		return ids
	}
	for name, test := range map[string]struct{ got, want []string }{
		"all, newest first": {sandboxes(nil), []string{second, first}},
		"sandbox id":        {sandboxes(&cri.PodSandboxFilter{Id: first[:13]}), []string{first}},
		"sandbox label":     {sandboxes(&cri.PodSandboxFilter{LabelSelector: map[string]string{"app": "pod-2"}}), []string{second}},
		"sandbox state":     {sandboxes(&cri.PodSandboxFilter{State: &cri.PodSandboxStateValue{State: cri.PodSandboxState_SANDBOX_READY}}), []string{first}},
		"containers":        {containers(nil), []string{created, running}},
		"container sandbox": {containers(&cri.ContainerFilter{PodSandboxId: first}), []string{running}},
		"container state":   {containers(&cri.ContainerFilter{State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_CREATED}}), []string{created}},
		"container label":   {containers(&cri.ContainerFilter{LabelSelector: map[string]string{"no": "such"}}), nil},
	} {
		if diff := cmp.Diff(test.want, test.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
