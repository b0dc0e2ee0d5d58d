package scheduler

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCoreKnowsNoClient: what decides must be the same in a cluster, beside one and in a simulator, so it may not know
// of clients, servers or a clock of its own.
func TestCoreKnowsNoClient(t *testing.T) {
	const here = "github.com/bayplan/bayplan/internal/scheduler/"
	args := []string{"list", "-deps"}
	for _, name := range []string{"core", "cycle", "ledger", "plugin", "plugins/...", "queue", "shape"} {
		args = append(args, here+name)
	}
	out, err := exec.Command("go", args...).CombinedOutput()
	if err != nil {
		t.Skipf("the go command is not available: %v: %s", err, out)
	}
	for _, name := range strings.Fields(string(out)) {
		for _, forbidden := range []string{"k8s.io/client-go", "k8s.io/apiserver", "k8s.io/kubernetes", "net/http/httptest", "k8s.io/kube-scheduler"} {
			if name == forbidden || strings.HasPrefix(name, forbidden+"/") {
				t.Errorf("the scheduler's core depends on %s", name)
			}
		}
	}
}
