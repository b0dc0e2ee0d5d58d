package e2e

import (
	"os"
	"strings"
	"testing"
)

// identities are the pods with what must not change when they are adopted.
func (m *machine) identities() string {
	m.t.Helper()
	return m.kubectl("get", "pods", "-l", "app=hello", "--sort-by=.metadata.name", "-o",
		"jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.podIP} {.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}{\"\\n\"}{end}")
}

// TestPodsSurviveKill: after kill -9 of the process pods go on; the next start adopts them untouched, loses nothing and can do everything with them.
func TestPodsSurviveKill(t *testing.T) {
	m := newMachine(t)
	c := m.up()
	m.kubectl("create", "configmap", "kept", "--from-literal=key=value")
	m.kubectl("apply", "-f", "../../examples/hello/deployment.yaml")
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	before := m.identities()
	c.kill()
	c = m.up()
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	if after := m.identities(); after != before {
		t.Errorf("after kill -9 the pods are\n%swant\n%s", after, before)
	}
	if value := m.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.key}"); value != "value" {
		t.Errorf("the ConfigMap holds %q", value)
	}
	for _, pod := range m.podNames("app=hello") {
		if answer := m.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/"+pod+":8080/proxy/"); !strings.HasPrefix(answer, "hello from "+pod) {
			t.Errorf("%s answers %q", pod, answer)
		}
		if log := m.kubectl("logs", pod); !strings.Contains(log, "GET / from") {
			t.Errorf("the log of %s did not go on: %q", pod, log)
		}
	}
	m.kubectl("scale", "deployment/hello", "--replicas=1")
	m.wait("deployment/hello", "--for=jsonpath={.status.replicas}=1")
	m.kubectl("delete", "deployment", "hello")
	m.wait("pod", "-l", "app=hello", "--for=delete")
	c.stop()
}

// TestKillInTheMiddle kills the process while a deployment is rolled out: what was acknowledged is carried out by the next start.
func TestKillInTheMiddle(t *testing.T) {
	m := newMachine(t)
	c := m.up()
	m.kubectl("apply", "-f", "../../examples/hello/deployment.yaml")
	c.kill()
	c = m.up()
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	if pods := m.podNames("app=hello"); len(pods) != 3 {
		t.Errorf("pods %v, want three", pods)
	}
	m.kubectl("delete", "deployment", "hello")
	m.wait("pod", "-l", "app=hello", "--for=delete")
	c.stop()
}

// TestOrderlyRestart: a stop takes the pods down, and the next start runs them again.
func TestOrderlyRestart(t *testing.T) {
	m := newMachine(t)
	c := m.up()
	m.kubectl("apply", "-f", "../../examples/hello/deployment.yaml")
	m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
	c.stop()
	m.checkNothingLeft()
	c = m.up()
	m.wait("pod", "-l", "app=hello", "--for=condition=Ready")
	for _, pod := range m.podNames("app=hello") {
		if answer := m.kubectl("get", "--raw", "/api/v1/namespaces/default/pods/"+pod+":8080/proxy/"); !strings.HasPrefix(answer, "hello from "+pod) {
			t.Errorf("%s answers %q", pod, answer)
		}
	}
	c.stop()
}

// TestDownAfterKill: `bayplan down` ends what a killed process left, pods and volumes of theirs included, and with --delete the data too. The control plane alone
// may be started between the two, and ends the pods as well.
func TestDownAfterKill(t *testing.T) {
	down := func(m *machine, flags ...string) {
		m.run(m.bayplan, append([]string{"down", "--data-dir", m.data, "--kubeconfig", m.kubeconfig}, flags...)...)
	}
	for name, end := range map[string]func(m *machine){
		"down":          func(m *machine) { down(m) },
		"down --delete": func(m *machine) { down(m, "--delete") },
		"up --nodes 0":  func(m *machine) { m.up("--nodes", "0").stop() },
		"up, then down": func(m *machine) {
			c := m.up("--nodes", "2")
			down(m)
			<-c.ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c := m.up()
			m.kubectl("apply", "-f", "../../examples/hello/deployment.yaml")
			m.kubectl("rollout", "status", "deployment/hello", "--timeout", patience.String())
			c.kill()
			end(m)
			m.checkNothingLeft()
			if strings.Contains(name, "--delete") {
				if _, err := os.Stat(m.data); !os.IsNotExist(err) {
					t.Errorf("the data directory is there: %v", err)
				}
			}
		})
	}
}
