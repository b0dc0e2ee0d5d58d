package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/bayplan/bayplan/internal/netns"
)

// TestNode looks at what a node does with pods that want something particular, all in one cluster: what people see of failures, ports and bandwidth,
// users, disk and CPU limits, and what is left of it after a restart.
func TestNode(t *testing.T) {
	m := newMachine(t)
	c := m.up()
	m.kubectl("apply", "-f", "testdata/node.yaml")
	m.wait("pod/port", "pod/own-users", "pod/throttled", "--for=condition=Ready")
	m.checkFailures()
	m.checkPort()
	m.checkBandwidth()
	m.checkUsers()
	m.checkThrottled()
	if mounts := m.mounts("port"); !strings.Contains(mounts, "kubernetes.io~secret/v rw,") || !strings.Contains(mounts, "- tmpfs tmpfs") {
		t.Errorf("the secret is on disk: %q", mounts)
	}
	if out, err := m.try(m.bayplan, "image", "remove", "hello:1", "--data-dir", m.data); err == nil || !strings.Contains(out, "image hello:1 is in use by pod default/") {
		t.Errorf("removing an image in use: %v, %s", err, out)
	}
	m.wait("pod/filler", "--for=jsonpath={.status.reason}=Evicted")
	if got, want := m.field("filler", "{.status.message}"), "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "; got != want {
		t.Errorf("filler: %q, want %q", got, want)
	}
	m.checkStatic()
	m.kubectl("delete", "pod", "bad-command", "throttled", "filler", "second-port", "no-config")
	m.checkEphemeral(c)
}

func (m *machine) field(pod, path string) string {
	m.t.Helper()
	return m.kubectl("get", "pod", pod, "-o", "jsonpath="+path)
}

// checkFailures: a command that isn't there loops with a growing pause and one kind of event; a ConfigMap that comes late is noticed.
func (m *machine) checkFailures() {
	t := m.t
	t.Helper()
	m.wait("pod/bad-command", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff")
	want := `StartError 128 unable to start container process: error during container init: exec: "/nothing": stat /nothing: no such file or directory`
	if got := m.field("bad-command", "{.status.containerStatuses[0].lastState.terminated['reason','exitCode','message']}"); got != want {
		t.Errorf("bad-command ended with %q, want %q", got, want)
	}
	m.wait("pod/no-config", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CreateContainerConfigError")
	if got := m.field("no-config", "{.status.containerStatuses[0].state.waiting.message}"); got != `configmap "late" not found` {
		t.Errorf("no-config waits with %q", got)
	}
	m.kubectl("create", "configmap", "late", "--from-literal=key=value")
	m.wait("pod/no-config", "--for=condition=Ready")
	m.wait("pod/second-port", "--for=jsonpath={.status.reason}=NodePorts")
	events := m.kubectl("get", "events", "--field-selector", "involvedObject.name=bad-command,reason=Failed", "-o", "jsonpath={.items[*].message}")
	if strings.Count(events, "Error: ") != 1 || strings.Contains(events, "/run/") {
		t.Errorf("events of bad-command: %q, want one that counts, without paths of the machine", events)
	}
}

// checkStatic: a manifest in the node's directory is a pod, which the API shows but does not have.
func (m *machine) checkStatic() {
	t := m.t
	t.Helper()
	dir := filepath.Join(m.data, "nodes", "node-1", "manifests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "static.yaml")
	manifest := "apiVersion: v1\nkind: Pod\nmetadata: {name: static}\nspec: {containers: [{name: c, image: \"hello:1\"}]}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	m.wait("pod/static-node-1", "--for=create")
	m.wait("pod/static-node-1", "--for=condition=Ready")
	id := m.field("static-node-1", "{.status.containerStatuses[0].containerID}")
	m.kubectl("delete", "pod", "static-node-1") // returns when this very object is gone; another one may be there by then
	m.wait("pod/static-node-1", "--for=create")
	m.wait("pod/static-node-1", "--for=condition=Ready")
	if now := m.field("static-node-1", "{.status.containerStatuses[0].containerID}"); now != id {
		t.Errorf("the deletion of its object restarted the static pod: %s, %s", id, now)
	}
	if log := m.kubectl("logs", "static-node-1"); !strings.Contains(log, "serves on :8080") {
		t.Errorf("log of the static pod: %q", log)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	m.wait("pod/static-node-1", "--for=delete")
}

func (m *machine) checkPort() {
	m.t.Helper()
	if answer := m.kubectl("get", "--raw", "/api/v1/nodes/http:node-1:9090/proxy/"); !strings.HasPrefix(answer, "hello from port to ") {
		m.t.Errorf("port 9090 of the node answers %q", answer)
	}
}

// checkBandwidth: both directions have a token bucket in the node's network namespace.
func (m *machine) checkBandwidth() {
	t := m.t
	t.Helper()
	ns, err := netns.Open(filepath.Join("/run/bayplan", m.id(), "_network/nodes/node-1"))
	if err != nil {
		t.Fatal(err)
	}
	rates := map[uint64]bool{}
	err = ns.Do(func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return err
		}
		for _, link := range links {
			qdiscs, err := netlink.QdiscList(link)
			if err != nil {
				return err
			}
			for _, q := range qdiscs {
				if tbf, ok := q.(*netlink.Tbf); ok {
					rates[tbf.Rate*8] = true
				}
			}
		}
		return nil
	})
	if err != nil || len(rates) != 2 || !rates[10e6] || !rates[20e6] {
		t.Errorf("bandwidths %v, %v; want 10 and 20 Mbit/s", rates, err)
	}
}

// checkUsers: root in the pod is somebody else on the machine.
func (m *machine) checkUsers() {
	t := m.t
	t.Helper()
	uid := m.field("own-users", "{.metadata.uid}")
	found := false
	for _, pattern := range []string{"/sys/fs/cgroup/memory/bayplan/*/*/*/pod%s/*/cgroup.procs", "/sys/fs/cgroup/bayplan/*/*/*/pod%s/*/cgroup.procs"} {
		for _, path := range glob(fmt.Sprintf(pattern, uid)) {
			pids, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, pid := range strings.Fields(string(pids)) {
				found = true
				if status, err := os.ReadFile("/proc/" + pid + "/uid_map"); err != nil || strings.Fields(string(status))[1] == "0" {
					t.Errorf("process %s has the machine's users: %q, %v", pid, status, err)
				}
			}
		}
	}
	if !found {
		t.Error("own-users has no process")
	}
}

// checkThrottled: 200m is a fifth of a core, however many there are.
func (m *machine) checkThrottled() {
	m.t.Helper()
	begun, used := time.Now(), m.cpuTime("throttled")
	time.Sleep(2 * time.Second) // the measured time, not a wait
	share := float64(m.cpuTime("throttled")-used) / float64(time.Since(begun))
	m.t.Logf("CPU of the throttled pod: %.2f of a core", share)
	if share > 0.3 {
		m.t.Errorf("a pod with a limit of 0.2 cores used %.2f", share)
	}
}

// mounts are the lines of mountinfo that are of a pod's volumes.
func (m *machine) mounts(pod string) string {
	m.t.Helper()
	uid := m.field(pod, "{.metadata.uid}")
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		m.t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(string(table), "\n") {
		if strings.Contains(line, "/pods/"+uid+"/volumes/") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

// checkEphemeral: an ephemeral container runs once, also when the node is shut down and runs its pods again.
func (m *machine) checkEphemeral(c *cluster) {
	t := m.t
	t.Helper()
	m.kubectl("patch", "pod", "port", "--subresource", "ephemeralcontainers", "--type", "strategic", "-p",
		`{"spec": {"ephemeralContainers": [{"name": "debug", "image": "hello:1", "imagePullPolicy": "Never", "args": ["exit", "3"]}]}}`)
	m.wait("pod/port", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.terminated.exitCode}=3")
	c.stop()
	m.checkNothingLeft()
	c = m.up()
	m.wait("pod/port", "pod/own-users", "--for=condition=Ready")
	m.checkPort()
	if got := m.field("port", "{.status.ephemeralContainerStatuses[0]['restartCount','state.terminated.exitCode']}"); got != "0 3" {
		t.Errorf("the ephemeral container stands %q, want 0 restarts and its exit code", got)
	}
	c.stop()
}
