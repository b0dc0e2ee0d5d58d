package node

import (
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const sized = `
metadata: {name: p}
spec:
  containers:
  - name: app
    image: "app:1"
    resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {cpu: 200m, memory: 64Mi}}
    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]
`

// resize changes the pod's spec as its resize subresource would.
func (c *cluster) resize(name, resourceName, request, limit string) {
	c.t.Helper()
	pod := c.pod(name)
	r := &pod.Spec.Containers[0].Resources
	r.Requests[v1.ResourceName(resourceName)], r.Limits[v1.ResourceName(resourceName)] = resource.MustParse(request), resource.MustParse(limit)
	pod.Generation++
	if _, err := c.api.CoreV1().Pods("default").Update(c.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.settle()
}

// resizing is the reason of the pod's resize condition, "" when there is none.
func (c *cluster) resizing(name string) string {
	c.t.Helper()
	for _, cond := range c.pod(name).Status.Conditions {
		if cond.Type == v1.PodResizePending || cond.Type == v1.PodResizeInProgress {
			return string(cond.Type) + " " + cond.Reason
		}
	}
	return ""
}

func TestResize(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) {
			cfg.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")}
		}
		c.start()
		c.create(sized)
		c.cri.Journal()
		c.resize("p", "cpu", "300m", "400m")
		c.expectJournal("update p/app shares=307 quota=40000 memory=67108864")
		s := c.pod("p").Status.ContainerStatuses[0]
		if got := s.AllocatedResources.Cpu().String() + " " + s.Resources.Limits.Cpu().String(); got != "300m 400m" {
			t.Errorf("allocated and actual: %s, want 300m 400m", got)
		}
		if got := c.resizing("p"); got != "" {
			t.Errorf("condition %q after a resize", got)
		}
		c.expect("p", "Running app+=running/0")

		// Memory needs a restart here.
		c.resize("p", "memory", "128Mi", "128Mi")
		c.expect("p", "Running app+=running/1")
		if got := c.cri.Config("p", "app").Linux.Resources.MemoryLimitInBytes; got != 128<<20 {
			t.Errorf("memory limit %d", got)
		}

		c.resize("p", "cpu", "2", "2")
		if got := c.resizing("p"); got != "PodResizePending Infeasible" {
			t.Errorf("condition %q", got)
		}
		if got := c.pod("p").Status.ContainerStatuses[0].AllocatedResources.Cpu().String(); got != "300m" {
			t.Errorf("allocated %s, want what it had, 300m", got)
		}
	})
}

func TestResizeWaitsForRoom(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.Capacity = v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")} }
		c.start()
		c.create(sized)
		c.create(`
metadata: {name: q}
spec:
  containers: [{name: app, image: "app:1", resources: {requests: {cpu: 800m}, limits: {cpu: 800m}}}]
`)
		c.resize("p", "cpu", "500m", "500m")
		if got := c.resizing("p"); got != "PodResizePending Deferred" {
			t.Errorf("condition %q", got)
		}
		// The agent is started anew: what was granted is still what counts.
		c.stop()
		c.start()
		if got := c.resizing("p"); got != "PodResizePending Deferred" {
			t.Errorf("condition %q after a restart of the agent", got)
		}
		c.cri.Journal()
		c.mark("q", 1)
		c.after(resizeRetried)
		if got := c.resizing("p"); got != "" {
			t.Errorf("condition %q", got)
		}
		if j := c.cri.Journal(); !slices.Contains(j, "update p/app shares=512 quota=50000 memory=67108864") {
			t.Errorf("the runtime was told %q", j)
		}
		c.expect("p", "Running app+=running/0")
	})
}

func TestResizeFails(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.create(sized)
		c.cri.Fail("UpdateContainerResources", errors.New("memory in use"))
		c.resize("p", "cpu", "300m", "400m")
		c.after(resizeRetried)
		if got := c.resizing("p"); got != "PodResizeInProgress Error" {
			t.Errorf("condition %q", got)
		}
		c.cri.Fail("UpdateContainerResources", nil)
		c.after(resizeRetried)
		if got := c.resizing("p"); got != "" {
			t.Errorf("condition %q", got)
		}
	})
}

// resizeRetried is after which a resize that could not be done was tried again.
const resizeRetried = 11e9
