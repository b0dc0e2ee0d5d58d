package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
)

// The addresses of a cluster on one machine. They exist inside its network namespaces only, so that they are the same for every cluster.
var (
	nodeCIDR    = netip.MustParsePrefix("172.30.0.0/24")
	podCIDR     = netip.MustParsePrefix("10.244.0.0/16")
	serviceCIDR = netip.MustParsePrefix("10.96.0.0/16")
)

const (
	// MaxNodes is how many nodes one process runs.
	MaxNodes = 100
	// apiPort is where the API server listens inside the cluster's network.
	apiPort = 6443
	// runRoot is where a cluster keeps what does not outlive the machine: sockets, mounts, namespaces.
	runRoot = "/run/bayplan"
)

// ErrNoNodes says why this process cannot run containers.
var ErrNoNodes = errors.New("nodes that run containers need Linux and root: run with sudo, or use --nodes 0 for the API alone")

// CheckNodes reports whether this process can run nodes.
func CheckNodes() error {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return ErrNoNodes
	}
	return nil
}

// apiEndpoint is where the API server listens inside the cluster's network. Without nodes there is no such network, and it is data that nobody dials.
func apiEndpoint() netip.AddrPort { return netip.AddrPortFrom(nodeCIDR.Addr().Next(), apiPort) }

// nodeName and nodePods are name and pod addresses of the node with that number, from 1.
func nodeName(number int) string { return fmt.Sprintf("node-%d", number) }

func nodePods(number int) netip.Prefix {
	base := podCIDR.Addr().As4()
	base[2] = byte(number)
	return netip.PrefixFrom(netip.AddrFrom4(base), 24)
}

// clusterID names the things of this cluster on the machine; it follows from the data directory, so that the next start finds what the last one left.
func clusterID(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	return hex.EncodeToString(sum[:4])
}

// DefaultDataDir is where a cluster's state is kept unless the user says otherwise.
func DefaultDataDir(root bool) (string, error) {
	if root && runtime.GOOS == "linux" {
		return "/var/lib/bayplan", nil
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "bayplan"), nil
	}
	if dir := os.Getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && dir != "" {
		return filepath.Join(dir, "bayplan"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no directory for the cluster's state; name one by --data-dir: %w", err)
	}
	return filepath.Join(home, ".local", "share", "bayplan"), nil
}

// ImagesDir is the image store of a data directory.
func ImagesDir(dataDir string) string { return filepath.Join(dataDir, "images") }
