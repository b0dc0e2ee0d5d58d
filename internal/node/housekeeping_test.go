package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/node/image"
)

// pressed is the node's condition of that kind of pressure.
func (c *cluster) pressed(kind v1.NodeConditionType) v1.ConditionStatus {
	c.t.Helper()
	node, err := c.api.CoreV1().Nodes().Get(c.t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == kind {
			return cond.Status
		}
	}
	return ""
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
		if got := c.pressed(v1.NodeMemoryPressure); got != v1.ConditionTrue {
			t.Errorf("MemoryPressure is %s", got)
		}

		c.free.Store(8 << 30)
		c.after(time.Minute)
		c.expect("burstable", "Running app+=running/0")
		c.create(strings.ReplaceAll(simple, "name: p", "name: late"))
		c.expect("late", "Failed Evicted")
		c.after(5 * time.Minute)
		if got := c.pressed(v1.NodeMemoryPressure); got != v1.ConditionFalse {
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

func TestEvictionForDisk(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.DiskThreshold = 1 << 30 }
		c.start()
		c.cri.AddImage("unused:1")
		for _, name := range []string{"small", "big"} {
			c.create(strings.ReplaceAll(simple, "name: p", "name: "+name))
		}
		c.create(`
metadata: {name: critical}
spec:
  priority: 2000000000
  containers: [{name: app, image: "app:1"}]
`)
		c.cri.UseDisk("small", 1<<20)
		c.cri.UseDisk("big", 1<<21)
		c.cri.UseDisk("critical", 1<<30)
		c.disk.Store(1<<30 - 1)
		c.after(10 * time.Second) // images go first, but only those that nobody has wanted for a while
		c.expect("big", "Failed Evicted app=Error(143)/0")
		want := "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 1048575Ki. " +
			"Container app was using 2048Ki, request is 0, has larger consumption of ephemeral-storage. "
		if got := c.pod("big").Status.Message; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if got := c.pressed(v1.NodeDiskPressure); got != v1.ConditionTrue {
			t.Errorf("DiskPressure is %s", got)
		}
		c.create(strings.ReplaceAll(simple, "name: p", "name: late"))
		c.expect("late", "Failed Evicted")
		if got := c.pod("late").Status.Message; got != "The node had condition: [DiskPressure]. " {
			t.Errorf("message %q", got)
		}
		c.disk.Store(1 << 30)
		c.after(10 * time.Second)
		c.expect("small", "Running app+=running/0")
		c.disk.Store(0)
		c.after(2 * time.Minute)
		c.expect("small", "Failed Evicted app=Error(143)/0")
		c.expect("critical", "Running app+=running/0")
		if !slices.Contains(c.events("n1"), "Normal NodeHasDiskPressure: Node n1 status is now: NodeHasDiskPressure") {
			t.Errorf("events %q", c.events("n1"))
		}
	})
}

// What disk pressure removes first is what nobody has used for a while.
func TestReclaimedImages(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.cri.AddImage("unused:1")
		c.create(simple)
		collector := image.Collector{Images: c.cri, Clock: c.node.cfg.Clock}
		if removed := c.node.collect(t.Context(), collector.Reclaim); len(removed) > 0 {
			t.Fatalf("%q went at once", removed)
		}
		c.after(2 * time.Minute)
		if removed := c.node.collect(t.Context(), collector.Reclaim); !slices.Equal(removed, []string{"unused:1"}) {
			t.Errorf("removed %q, want the image that nobody uses", removed)
		}
	})
}

func TestEvictionForProcesses(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		for name, n := range map[string]uint64{"few": 3, "many": 300} {
			c.create(strings.ReplaceAll(simple, "name: p", "name: "+name))
			c.cri.UseProcesses(name, n)
		}
		c.pids.Store(499)
		c.after(10 * time.Second)
		c.expect("many", "Failed Evicted app=Error(143)/0")
		c.expect("few", "Running app+=running/0")
		if got := c.pod("many").Status.Message; got != "The node was low on resource: pids. Threshold quantity: 500, available: 499. " {
			t.Errorf("message %q", got)
		}
		if got := c.pressed(v1.NodePIDPressure); got != v1.ConditionTrue {
			t.Errorf("PIDPressure is %s", got)
		}
	})
}

func TestEvictionForEphemeralStorageLimit(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(`
metadata: {name: p}
spec:
  containers: [{name: app, image: "app:1", resources: {limits: {ephemeral-storage: 1Mi}}}]
`)
		c.cri.UseDisk("p", 1<<20-1)
		c.after(10 * time.Second)
		c.expect("p", "Running app+=running/0")
		logs := filepath.Join(c.root, "logs", "default_p_uid-p", "app")
		if err := errors.Join(os.MkdirAll(logs, 0o755), os.WriteFile(filepath.Join(logs, "0.log"), []byte("xx"), 0o644)); err != nil {
			t.Fatal(err)
		}
		c.after(10 * time.Second)
		c.expect("p", "Failed Evicted app=Error(143)/0")
		if got := c.pod("p").Status.Message; got != "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. " {
			t.Errorf("message %q", got)
		}
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
