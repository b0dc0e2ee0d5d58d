package node

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const simple = `
metadata: {name: p}
spec:
  containers: [{name: app, image: "app:1"}]
`

func TestNodeIsReadyAtOnce(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		node, err := c.api.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, cond := range node.Status.Conditions {
			got = append(got, string(cond.Type)+"="+string(cond.Status)+" "+cond.Reason)
		}
		want := []string{"MemoryPressure=False KubeletHasSufficientMemory", "DiskPressure=False KubeletHasNoDiskPressure",
			"PIDPressure=False KubeletHasSufficientPID", "Ready=True KubeletReady"}
		if !slices.Equal(got, want) {
			t.Errorf("conditions %q, want %q", got, want)
		}
		if p := node.Status.Allocatable.Pods().Value(); p != 110 {
			t.Errorf("%d pods allocatable, want 110", p)
		}
		if v := node.Status.NodeInfo.ContainerRuntimeVersion; v != "fake://1.0.0" {
			t.Errorf("containerRuntimeVersion %q", v)
		}
		lease, err := c.api.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if o := lease.OwnerReferences; len(o) != 1 || o[0].Kind != "Node" || o[0].Name != "n1" {
			t.Errorf("the lease belongs to %v, want the node", o)
		}
		first := lease.Spec.RenewTime.Time
		c.after(25 * time.Second)
		if lease, err = c.api.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "n1", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if age := lease.Spec.RenewTime.Sub(first); age < 10*time.Second {
			t.Errorf("the lease was renewed only after %s", age)
		}
	})
}

func TestRuntimeDown(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.cri.Fail("Status", errors.New("no socket"))
		c.after(11 * time.Second)
		node, err := c.api.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ready := node.Status.Conditions[3]
		if ready.Status != v1.ConditionFalse || ready.Reason != "KubeletNotReady" || !strings.Contains(ready.Message, "no socket") {
			t.Errorf("condition %+v", ready)
		}
	})
}

func TestPodRuns(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		// Events of the same instant would have the same name.
		c.cri.Delay("CreateContainer", time.Millisecond)
		c.cri.Delay("StartContainer", time.Millisecond)
		c.create(simple)
		c.after(2 * time.Millisecond)
		c.expect("p", "Running app+=running/0")
		c.expectJournal("run-sandbox p attempt=0", "start p/app attempt=0")
		pod := c.pod("p")
		if pod.Status.PodIP == "" || pod.Status.HostIP != "10.0.0.1" || pod.Status.QOSClass != v1.PodQOSBestEffort {
			t.Errorf("status %+v", pod.Status)
		}
		want := []string{
			`Normal Pulled: Container image "app:1" already present on machine and can be accessed by the pod`,
			"Normal Created: Container created", "Normal Started: Container started",
		}
		if got := c.events("p"); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		config := c.cri.Config("p", "app")
		for _, m := range config.Mounts {
			if m.ContainerPath == "/etc/hosts" {
				text, err := os.ReadFile(m.HostPath)
				if err != nil || !strings.Contains(string(text), pod.Status.PodIP+"\tp\n") {
					t.Errorf("hosts file %q, %v", text, err)
				}
			}
		}
	})
}

func TestDeletedPodEndsAndGoes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(simple)
		c.cri.IgnoreTerm("app")
		c.cri.Journal()
		c.mark("p", 5)
		c.expect("p", "Running app+=running/0")
		c.after(5 * time.Second)
		if _, err := c.api.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the pod is still there: %v, %s", err, c.stands("p"))
		}
		c.expectJournal("stop p/app timeout=5s", "stop-sandbox p", "stop-sandbox p", "remove-sandbox p")
		left, err := filepath.Glob(filepath.Join(c.root, "*", "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	})
}

func TestBackOff(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(simple)
		c.exit("p", "app", 1)
		c.expect("p", "Running app+=running/1")
		c.exit("p", "app", 1)
		c.expect("p", "Running app=CrashLoopBackOff/1")
		c.after(9900 * time.Millisecond)
		c.expect("p", "Running app=CrashLoopBackOff/1")
		c.after(200 * time.Millisecond)
		c.expect("p", "Running app+=running/2")
		c.exit("p", "app", 1)
		c.after(19 * time.Second)
		c.expect("p", "Running app=CrashLoopBackOff/2")
		c.after(time.Second)
		c.expect("p", "Running app+=running/3")
	})
}

func TestPullFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.cri.Fail("PullImage/missing:1", errors.New("no such image"))
		c.create(`
metadata: {name: p}
spec:
  containers: [{name: app, image: "missing:1"}]
`)
		c.expect("p", "Pending app=ErrImagePull/0")
		c.after(3 * time.Second)
		c.expect("p", "Pending app=ImagePullBackOff/0")
		c.cri.Fail("PullImage/missing:1", nil)
		c.after(8 * time.Second)
		c.expect("p", "Running app+=running/0")
		if got := c.pod("p").Status.ContainerStatuses[0].ImageID; got != "sha256:missing:1" {
			t.Errorf("imageID %q", got)
		}
	})
}

func TestMissingConfigMap(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers:
  - {name: app, image: "app:1", envFrom: [{configMapRef: {name: settings}}]}
`)
		c.expect("p", "Pending app=CreateContainerConfigError/0")
		if m := c.pod("p").Status.ContainerStatuses[0].State.Waiting.Message; m != `configmap "settings" not found` {
			t.Errorf("message %q", m)
		}
		_, err := c.api.CoreV1().ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"COLOUR": "blue"},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c.after(2 * time.Second)
		c.expect("p", "Running app+=running/0")
		if env := c.cri.Config("p", "app").Envs; len(env) != 1 || string(env[0].Value) != "blue" {
			t.Errorf("environment %v", env)
		}
	})
}

func TestRestartOfTheAgentTouchesNothing(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(simple)
		c.exit("p", "app", 1)
		c.expect("p", "Running app+=running/1")
		before := c.pod("p")
		c.cri.Journal()
		c.stop()
		c.start()
		c.after(time.Minute)
		c.expect("p", "Running app+=running/1")
		c.expectJournal()
		if got := c.pod("p"); got.ResourceVersion != before.ResourceVersion {
			t.Errorf("the status was written again: %+v", got.Status)
		}
		c.exit("p", "app", 1)
		c.expect("p", "Running app+=running/2")
	})
}

func TestWhatHappensWhileTheAgentIsAway(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(simple)
		c.create(strings.ReplaceAll(simple, "name: p", "name: q"))
		c.cri.Journal()
		c.stop()
		if err := c.cri.Exit("p", "app", 3, ""); err != nil {
			t.Fatal(err)
		}
		if err := c.api.CoreV1().Pods("default").Delete(t.Context(), "q", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.start()
		c.expect("p", "Running app+=running/1")
		if last := c.pod("p").Status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.ExitCode != 3 {
			t.Errorf("last state %+v, want exit code 3", last)
		}
		journal := strings.Join(c.cri.Journal(), "; ")
		for _, want := range []string{"start p/app attempt=1", "stop q/app timeout=30s", "remove-sandbox q"} {
			if !strings.Contains(journal, want) {
				t.Errorf("the runtime was told %q, without %q", journal, want)
			}
		}
	})
}

func TestShutdownAndNextStart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  restartPolicy: Never
  containers: [{name: app, image: "app:1"}]
`)
		node := c.node
		c.stop()
		if err := node.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := c.cri.Containers(0); len(left) > 0 {
			t.Errorf("containers left: %q", left)
		}
		c.expect("p", "Running app+=running/0")
		c.start()
		c.expect("p", "Running app+=running/1")
	})
}

func TestPodThatDoesNotFit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.MaxPods = 1 }
		c.start()
		c.create(simple)
		c.create(strings.ReplaceAll(simple, "name: p", "name: q"))
		c.expect("p", "Running app+=running/0")
		c.expect("q", "Failed OutOfpods")
		want := "Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1"
		if got := c.pod("q").Status.Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	})
}

func TestLostSandbox(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(simple)
		c.cri.KillSandbox("p")
		c.settle()
		c.expect("p", "Running app+=running/1")
	})
}

func TestRuntimeWithoutEvents(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.cri.Fail("GetContainerEvents", unimplemented)
		c.start()
		c.create(simple)
		c.expect("p", "Running app+=running/0")
		c.after(2 * time.Second)
		c.exit("p", "app", 1)
		c.after(1100 * time.Millisecond)
		c.expect("p", "Running app+=running/1")
	})
}

func TestProbes(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var sick atomic.Bool
		c.cri.OnExec(func(_ ctx, _ string, cmd []string) (string, int32, error) {
			if cmd[0] == "live" && sick.Load() {
				return "sick", 1, nil
			}
			return "", 0, nil
		})
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers:
  - name: app
    image: "app:1"
    readinessProbe: {exec: {command: [ready]}, initialDelaySeconds: 5, periodSeconds: 10, failureThreshold: 3}
    livenessProbe: {exec: {command: [live]}, periodSeconds: 10, failureThreshold: 3}
`)
		c.expect("p", "Running app=running/0")
		c.after(5 * time.Second)
		c.expect("p", "Running app+=running/0")
		sick.Store(true)
		c.after(24 * time.Second)
		c.expect("p", "Running app+=running/0")
		c.after(2 * time.Second)
		c.expect("p", "Running app=running/1")
		if e := strings.Join(c.events("p"), "\n"); !strings.Contains(e, "Unhealthy: Liveness probe failed: sick") ||
			!strings.Contains(e, "Killing: Container app failed liveness probe, will be restarted") {
			t.Errorf("events %s", e)
		}
	})
}

func TestHooks(t *testing.T) {
	inCluster(t, func(c *cluster) {
		var asked []string
		c.cri.OnExec(func(_ ctx, _ string, cmd []string) (string, int32, error) {
			asked = append(asked, cmd[0])
			return "", 0, nil
		})
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers:
  - name: app
    image: "app:1"
    lifecycle: {postStart: {exec: {command: [hello]}}, preStop: {sleep: {seconds: 4}}}
`)
		c.expect("p", "Running app+=running/0")
		c.cri.Journal()
		c.mark("p", 10)
		c.after(3 * time.Second)
		c.expect("p", "Running app+=running/0")
		c.after(2 * time.Second)
		if !slices.Equal(asked, []string{"hello"}) {
			t.Errorf("commands %q", asked)
		}
		if j := c.cri.Journal(); len(j) == 0 || j[0] != "stop p/app timeout=6s" {
			t.Errorf("the runtime was told %q", j)
		}
	})
}

func TestConfigMapVolumeFollowsItsObject(t *testing.T) {
	inCluster(t, func(c *cluster) {
		object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"}}
		if _, err := c.api.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.start()
		c.create(`
metadata: {name: p, labels: {tier: one}}
spec:
  containers: [{name: app, image: "app:1", volumeMounts: [{name: v, mountPath: /v}]}]
  volumes:
  - name: v
    projected:
      sources:
      - {configMap: {name: settings}}
      - {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}
`)
		dir := c.cri.Config("p", "app").Mounts[0].HostPath
		expect := func(file, want string) {
			t.Helper()
			if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
				t.Errorf("%s: %q, %v; want %q", file, got, err, want)
			}
		}
		expect("colour", "blue")
		expect("labels", `tier="one"`)
		object.Data["colour"] = "red"
		if _, err := c.api.CoreV1().ConfigMaps("default").Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.after(refreshed)
		expect("colour", "red")
		pod := c.pod("p")
		pod.Labels["tier"] = "two"
		if _, err := c.api.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		expect("labels", `tier="two"`)
	})
}

// refreshed is after which volumes show what their objects say.
const refreshed = 31 * time.Second

func TestPodForAnotherNode(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  nodeSelector: {disk: ssd}
  containers: [{name: app, image: "app:1"}]
`)
		c.expect("p", "Failed NodeAffinity")
		node, err := c.api.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node.Labels["disk"] = "ssd"
		if _, err := c.api.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.create(`
metadata: {name: q}
spec:
  nodeSelector: {disk: ssd}
  containers: [{name: app, image: "app:1"}]
`)
		c.expect("q", "Running app+=running/0")
	})
}

func TestImageVolume(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers: [{name: app, image: "app:1", volumeMounts: [{name: data, mountPath: /data, subPath: dir}]}]
  volumes: [{name: data, image: {reference: "data:1"}}]
`)
		c.expect("p", "Running app+=running/0")
		m := c.cri.Config("p", "app").Mounts[0]
		if m.Image.GetImage() != "sha256:data:1" || m.ImageSubPath != "dir" || !m.Readonly {
			t.Errorf("mount %v", m)
		}
	})
}

// A port of the node can be had once: who comes second, past the scheduler, is refused.
func TestPodWithTakenHostPort(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		pod := func(name, port string) {
			c.create(`{metadata: {name: ` + name + `}, spec: {containers: [{name: app, image: "app:1", ports: [` + port + `]}]}}`)
		}
		pod("first", `{containerPort: 80, hostPort: 80}`)
		pod("second", `{containerPort: 8080, hostPort: 80, hostIP: 10.0.0.1}`)
		pod("udp", `{containerPort: 80, hostPort: 80, protocol: UDP}`)
		c.expect("first", "Running app+=running/0")
		c.expect("second", "Failed NodePorts")
		c.expect("udp", "Running app+=running/0")
		if want := "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"; c.pod("second").Status.Message != want {
			t.Errorf("message %q, want %q", c.pod("second").Status.Message, want)
		}
	})
}
