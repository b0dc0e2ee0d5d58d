package node

import (
	"testing"
	"time"
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
