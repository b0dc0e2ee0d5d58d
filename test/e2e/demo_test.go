package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestManifestToProcess does what the demo shows, and checks it.
func TestManifestToProcess(t *testing.T) {
	m := newMachine(t)
	c := m.up()
	m.kubectl("apply", "-f", "../../examples/hello/deployment.yaml")
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	pods := m.podNames("app=hello")
	if len(pods) != 3 {
		t.Fatalf("pods %v, want three", pods)
	}
	for _, pod := range pods {
		answer := m.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/"+pod+":8080/proxy/")
		if !strings.HasPrefix(answer, "hello from "+pod+" to 172.30.0.1:") {
			t.Errorf("%s answers %q", pod, answer)
		}
		if log := m.kubectl("logs", pod); !strings.Contains(log, pod+" serves on :8080") || !strings.Contains(log, "GET / from 172.30.0.1:") {
			t.Errorf("log of %s: %q", pod, log)
		}
	}
	wide := m.kubectl("get", "pods", "-o", "wide")
	for _, want := range []string{"NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "1/1", "Running", "10.244.1.", "node-1"} {
		if !strings.Contains(wide, want) {
			t.Errorf("kubectl get pods -o wide lacks %q:\n%s", want, wide)
		}
	}
	m.checkLimits()
	m.kubectl("scale", "deployment/hello", "--replicas=5")
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	m.kubectl("scale", "deployment/hello", "--replicas=1")
	m.wait("deployment/hello", "--for=jsonpath={.status.replicas}=1")
	m.kubectl("delete", "-f", "../../examples/hello/deployment.yaml")
	m.wait("pod", "-l", "app=hello", "--for=delete")
	if left := m.kubectl("get", "deployments,replicasets,pods"); !strings.Contains(left, "No resources found") {
		t.Errorf("after delete: %s", left)
	}
	c.stop()
}

// checkLimits: a memory limit kills and is reported; CPU time is shared as requested.
func (m *machine) checkLimits() {
	t := m.t
	t.Helper()
	m.kubectl("apply", "-f", "../../examples/hello/limits.yaml")
	m.wait("pod/eater", "--for=jsonpath={.status.containerStatuses[0].state.terminated.reason}=OOMKilled")
	if code := m.kubectl("get", "pod", "eater", "-o", "jsonpath={.status.phase} {.status.containerStatuses[0].state.terminated.exitCode}"); code != "Failed 137" {
		t.Errorf("eater: %s, want Failed 137", code)
	}
	m.wait("pod/burner-1", "pod/burner-3", "--for=condition=Ready")
	one, three := m.cpuTime("burner-1"), m.cpuTime("burner-3")
	time.Sleep(6 * time.Second) // the measured time, not a wait
	ratio := float64(m.cpuTime("burner-3")-three) / float64(m.cpuTime("burner-1")-one)
	t.Logf("CPU time of the burners: 1 to %.2f", ratio)
	// Other work on the machine shifts it a little; equal shares would be 1.
	if ratio < 2 || ratio > 6 {
		t.Errorf("CPU time is shared 1 to %.2f, want 1 to 3", ratio)
	}
	m.kubectl("delete", "-f", "../../examples/hello/limits.yaml")
}

// cpuTime is what a pod has used, in nanoseconds, from its cgroup.
func (m *machine) cpuTime(pod string) int64 {
	m.t.Helper()
	uid := m.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	for _, pattern := range []string{"/sys/fs/cgroup/cpuacct/bayplan/*/*/*/pod%s/cpuacct.usage", "/sys/fs/cgroup/cpu,cpuacct/bayplan/*/*/*/pod%s/cpuacct.usage"} {
		for _, path := range glob(fmt.Sprintf(pattern, uid)) {
			return m.number(path, "")
		}
	}
	for _, path := range glob(fmt.Sprintf("/sys/fs/cgroup/bayplan/*/*/*/pod%s/cpu.stat", uid)) {
		return 1000 * m.number(path, "usage_usec ")
	}
	m.t.Fatalf("pod %s (%s) has no cgroup", pod, uid)
	return 0
}

func glob(pattern string) []string {
	paths, _ := filepath.Glob(pattern)
	return paths
}

// number reads the number that stands in the first line that begins with prefix.
func (m *machine) number(path, prefix string) int64 {
	m.t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		if text, ok := strings.CutPrefix(line, prefix); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			if err != nil {
				m.t.Fatalf("%s: %v", path, err)
			}
			return n
		}
	}
	m.t.Fatalf("%s: no line %q", path, prefix)
	return 0
}

func (m *machine) podNames(selector string) []string {
	m.t.Helper()
	return strings.Fields(m.kubectl("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"))
}
