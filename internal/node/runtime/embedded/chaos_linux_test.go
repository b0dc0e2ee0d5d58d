package embedded

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var (
	chaosSeed  = flag.Uint64("chaos.seed", 1, "seed of TestChaos")
	chaosSteps = flag.Int("chaos.steps", 60, "steps of TestChaos")
)

// chaos does things at random and knows what must come of them.
type chaos struct {
	*fixture
	random *rand.Rand
	ready  []string          // sandboxes
	want   map[string][]int  // container: the exit codes that it may end with
	owner  map[string]string // container: its sandbox
	killed map[string]int    // sandbox: its helper that was killed
}

// TestChaos starts and stops containers while agents and helpers are killed, and checks that every exit code is right in the end. That
// nothing is left is checked by the fixture.
func TestChaos(t *testing.T) {
	c := &chaos{fixture: newFixture(t), random: rand.New(rand.NewPCG(*chaosSeed, 0)), want: map[string][]int{}, owner: map[string]string{}, killed: map[string]int{}}
	c.ready = append(c.ready, c.pod())
	for i := range *chaosSteps {
		t.Logf("step %d: %s", i, c.step())
	}
	for id, codes := range c.want {
		if !keepsExits() && len(c.killed) > 0 {
			codes = append(codes, lostCode)
		}
		if got := c.fixture.wait(id); !slices.Contains(codes, int(got.ExitCode)) {
			t.Errorf("container %.12s ended with %d (%s), want one of %v", id, got.ExitCode, got.Message, codes)
		}
	}
}

func (c *chaos) step() string {
	pod := c.ready[c.random.IntN(len(c.ready))]
	switch n := c.random.IntN(100); {
	case n < 10:
		c.ready = append(c.ready, c.pod())
		return "new pod"
	case n < 50:
		return c.startOne(pod)
	case n < 65:
		c.loseExits()
		c.reopen()
		return "agent restarted"
	case n < 80:
		s, err := c.r.sandbox(pod)
		if err != nil {
			c.t.Fatal(err)
		}
		pid := c.helperOf(s)
		c.killed[pod] = pid
		_ = unix.Kill(pid, unix.SIGKILL) // and go on before another has taken its place
		return fmt.Sprintf("killed helper %d", pid)
	case n < 92:
		return c.stopOne()
	default:
		if len(c.ready) == 1 {
			return "nothing"
		}
		c.ready = slices.DeleteFunc(c.ready, func(id string) bool { return id == pod })
		if _, err := c.r.RemovePodSandbox(c.t.Context(), &cri.RemovePodSandboxRequest{PodSandboxId: pod}); err != nil {
			c.t.Fatal(err)
		}
		for id, owner := range c.owner {
			if owner == pod {
				delete(c.want, id)
				delete(c.owner, id)
			}
		}
		return "pod removed"
	}
}

func (c *chaos) helperOf(s *sandbox) int {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return s.helperPID
}

// loseExits allows for exit codes that nobody can know: of containers whose helper and agent are killed at once, and on a kernel that does not
// keep them.
func (c *chaos) loseExits() {
	for pod, pid := range c.killed {
		s, err := c.r.sandbox(pod)
		if err != nil || c.helperOf(s) != pid {
			continue
		}
		for id, owner := range c.owner {
			if owner == pod {
				c.want[id] = append(c.want[id], lostCode)
			}
		}
	}
}

// startOne starts a container that ends soon with a code of its own. A helper that was killed in that moment may refuse.
func (c *chaos) startOne(pod string) string {
	code := c.random.IntN(100)
	id := c.create(pod, containerConfig(fmt.Sprintf("c%d", len(c.owner)+1000*c.random.IntN(1000)), "sleep", strconv.Itoa(c.random.IntN(300))+"ms", "exit", strconv.Itoa(code)))
	c.owner[id] = pod
	if _, err := c.r.StartContainer(c.t.Context(), &cri.StartContainerRequest{ContainerId: id}); err != nil {
		c.want[id] = []int{startFailedCode}
		return "start refused: " + err.Error()
	}
	c.want[id] = []int{code}
	return fmt.Sprintf("started a container that ends with %d", code)
}

func (c *chaos) stopOne() string {
	for id := range c.want {
		c.stop(id)
		c.want[id] = append(c.want[id], 137)
		return "stopped a container"
	}
	return "nothing to stop"
}

// keepsExits tells whether the kernel tells the exit status of a process to who holds its pidfd (Linux 6.15).
func keepsExits() bool {
	var name unix.Utsname
	var major, minor int
	if err := unix.Uname(&name); err != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 15
}
