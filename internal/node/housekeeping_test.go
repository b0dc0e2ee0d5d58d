package node

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memoryPressure is the node's condition.
func (c *cluster) memoryPressure() v1.ConditionStatus {
	c.t.Helper()
	node, err := c.api.CoreV1().Nodes().Get(c.t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return node.Status.Conditions[0].Status
}

func TestEvictionForMemory(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: burstable}
spec:
  containers: [{name: app, image: "app:1", resources: {requests: {memory: 64Mi}}}]
`)
		c.create(strings.ReplaceAll(simple, "name: p", "name: best-effort"))
		c.cri.UseMemory("burstable", 60<<20)
		c.cri.UseMemory("best-effort", 10<<20)
		c.after(10 * time.Second)
		c.expect("best-effort", "Running app+=running/0")

		c.free.Store(50 << 20)
		c.after(10 * time.Second)
		c.expect("best-effort", "Failed Evicted app=Error(143)/0")
		c.expect("burstable", "Running app+=running/0")
		pod := c.pod("best-effort")
		want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. " +
			"Container app was using 10240Ki, request is 0, has larger consumption of memory. "
		if pod.Status.Message != want {
			t.Errorf("message %q, want %q", pod.Status.Message, want)
		}
		if !slices.ContainsFunc(pod.Status.Conditions, func(cond v1.PodCondition) bool {
			return cond.Type == v1.DisruptionTarget && cond.Reason == v1.PodReasonTerminationByKubelet
		}) {
			t.Errorf("conditions %+v lack DisruptionTarget", pod.Status.Conditions)
		}
		if got := c.memoryPressure(); got != v1.ConditionTrue {
			t.Errorf("MemoryPressure is %s", got)
		}

		c.free.Store(8 << 30)
		c.after(time.Minute)
		c.expect("burstable", "Running app+=running/0")
		c.create(strings.ReplaceAll(simple, "name: p", "name: late"))
		c.expect("late", "Failed Evicted app=ContainerCreating/0")
		c.after(5 * time.Minute)
		if got := c.memoryPressure(); got != v1.ConditionFalse {
			t.Errorf("MemoryPressure is %s long after", got)
		}
	})
}

func TestEvictionForVolume(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers: [{name: app, image: "app:1", volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, emptyDir: {sizeLimit: 1Ki}}]
`)
		dir := c.cri.Config("p", "app").Mounts[0].HostPath
		if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, 1025), 0o644); err != nil {
			t.Fatal(err)
		}
		c.after(10 * time.Second)
		c.expect("p", "Failed Evicted app=Error(143)/0")
	})
}

func TestLogRotation(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.LogMaxSize, cfg.LogMaxFiles = 100, 3 }
		c.start()
		c.create(simple)
		path := filepath.Join(c.root, "logs", "default_p_uid-p", "app", "0.log")
		for i := range 4 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			text := fmt.Sprintf("%d%s", i, strings.Repeat("x", 100))
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			c.after(10 * time.Second)
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != 3 {
			t.Fatalf("files %q, %v; want 3", files, err)
		}
		last, err := os.ReadFile(files[2])
		if err != nil || last[0] != '3' {
			t.Errorf("the newest of the old logs is %.5q, %v", last, err)
		}
	})
}
