package node

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
)

// A pod start costs the API few writes: the status when it is accepted, when it has an address, and when it runs.
func TestPodStartWritesLittle(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.start()
		c.cri.Delay("RunPodSandbox", 10*time.Millisecond)
		c.cri.Delay("StartContainer", 10*time.Millisecond)
		c.api.ClearActions()
		c.create(simple)
		c.after(time.Second)
		c.expect("p", "Running app+=running/0")
		writes := 0
		for _, a := range c.api.Actions() {
			if a.GetVerb() == "patch" && a.GetResource().Resource == "pods" {
				writes++
			}
		}
		if writes > 3 {
			t.Errorf("%d writes of the status, want 3", writes)
		}
	})
}

// An API that drops part of a status is not written to for ever.
func TestForgetfulAPI(t *testing.T) {
	inCluster(t, func(c *cluster) {
		writes := 0
		c.api.PrependReactor("patch", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
			writes++
			object, err := c.api.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), "default", "p")
			return true, object, err // as it was
		})
		c.start()
		c.create(simple)
		c.after(time.Minute)
		if writes == 0 || writes > 6 {
			t.Errorf("%d writes of the status", writes)
		}
	})
}
