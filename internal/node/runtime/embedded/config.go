package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/bayplan/bayplan/internal/node/network"
	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"k8s.io/utils/clock"
)

// Network gives pods their addresses. All methods are idempotent.
type Network interface {
	// SetUp connects the network namespace pinned at netnsPath and gives the pod's addresses, the first of which is its main one.
	SetUp(ctx context.Context, sandboxID string, netnsPath string) ([]netip.Addr, error)
	// Publish leads exactly these ports of the node to the pod, which SetUp has connected.
	Publish(ctx context.Context, sandboxID string, ports []network.PortMapping) error
	// Shape limits what the pod may receive and send, in bits a second; 0 is no limit.
	Shape(ctx context.Context, sandboxID string, ingress, egress uint64) error
	// TearDown undoes all of that, also when the namespace is gone already.
	TearDown(ctx context.Context, sandboxID string, netnsPath string) error
}

// Config says where a runtime keeps its things and what it works with.
type Config struct {
	// Root is the directory for what must survive a reboot.
	Root string
	// RunDir is the directory for what must not: sockets and mounts. It is below /run.
	RunDir string
	// CgroupParent is the cgroup below which everything of this node runs, relative to the hierarchy's root: "bayplan/CLUSTER/NODE".
	CgroupParent string
	// Images is the machine's image store.
	Images *image.Store
	// Network connects pods that have a network of their own; nil leaves them with a loopback.
	Network Network
	// HostNetworkNamespace is the file of the node's network namespace, in which pods with host network run. Empty is this process's own.
	HostNetworkNamespace string
	// SeccompRoot is the directory to which the paths of Localhost seccomp profiles must belong; empty is Root/seccomp.
	SeccompRoot string
	// Helper is the pod helper's binary to use in place of the embedded one.
	Helper string
	// Clock is the real one if nil.
	Clock clock.Clock
}

func (c *Config) complete() error {
	switch {
	case !filepath.IsAbs(c.Root) || !filepath.IsAbs(c.RunDir):
		return fmt.Errorf("container runtime: Root %q and RunDir %q must be absolute paths", c.Root, c.RunDir)
	case c.CgroupParent == "":
		return errors.New("container runtime: CgroupParent is not set")
	case c.Images == nil:
		return errors.New("container runtime: Images is not set")
	}
	c.CgroupParent = filepath.Join("/", c.CgroupParent)
	if c.CgroupParent == "/" {
		return errors.New("container runtime: CgroupParent must not be the root of the hierarchy")
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.SeccompRoot == "" {
		c.SeccompRoot = filepath.Join(c.Root, "seccomp")
	}
	return nil
}
