package node

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ledger notes what a node does with cgroups.
type ledger struct {
	mu    sync.Mutex
	lines []string
	class string // as last set; the same again is nothing new
}

func (l *ledger) note(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
	return nil
}

func (l *ledger) EnsurePod(_ ctx, parent string, r *cri.LinuxContainerResources) error {
	return l.note("pod %s shares %d quota %d memory %d", parent, r.CpuShares, r.CpuQuota, r.MemoryLimitInBytes)
}
func (l *ledger) RemovePod(_ ctx, uid string) error { return l.note("remove %s", uid) }
func (l *ledger) EnsureNode(_ ctx, shares, _ int64) error {
	return l.note("node shares %d", shares)
}
func (l *ledger) SetClass(_ ctx, class string, shares int64) error {
	if set := fmt.Sprint(class, shares); set != l.class {
		l.class = set
		return l.note("%s shares %d", class, shares)
	}
	return nil
}
func (l *ledger) Retain(ctx, func(string) bool) { _ = l.note("retain") }

func TestCgroupsOfPodsAndClasses(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := &ledger{}
		c.config = func(cfg *Config) { cfg.Cgroups = l }
		c.start()
		l.lines = l.lines[1:] // the node's share is the machine's
		c.create(`
metadata: {name: b}
spec:
  containers: [{name: app, image: "app:1", resources: {requests: {cpu: 100m}}}]
`)
		c.create(`
metadata: {name: b3}
spec:
  restartPolicy: Never
  containers: [{name: app, image: "app:1", resources: {requests: {cpu: 300m}, limits: {cpu: "1", memory: 64Mi}}}]
`)
		c.exit("b3", "app", 0)
		c.mark("b", 0)
		c.settle()
		want := []string{
			"retain", "burstable shares 102", "pod /bayplan/test/n1/burstable/poduid-b shares 102 quota 0 memory 0",
			"burstable shares 409", "pod /bayplan/test/n1/burstable/poduid-b3 shares 307 quota 100000 memory 67108864",
			"burstable shares 102", "burstable shares 2", "remove uid-b",
		}
		l.mu.Lock()
		defer l.mu.Unlock()

		if !slices.Equal(l.lines, want) {
			t.Errorf("the cgroups were told\n%q\nwant\n%q", l.lines, want)
		}
	})
}

// A container that is restarted to be resized gets a pod around it that has grown too.
func TestCgroupFollowsResizeByRestart(t *testing.T) {
	inCluster(t, func(c *cluster) {
		l := &ledger{}
		c.config = func(cfg *Config) { cfg.Cgroups = l }
		c.start()
		c.create(sized)
		c.resize("p", "memory", "128Mi", "128Mi")
		c.settle()
		l.mu.Lock()
		defer l.mu.Unlock()
		want := "pod /bayplan/test/n1/burstable/poduid-p shares 102 quota 20000 memory 134217728"
		if last := l.lines[len(l.lines)-1]; last != want {
			t.Errorf("the cgroups were told\n%q\nwant in the end\n%q", l.lines, want)
		}
	})
}
