package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/runtime"
)

// Config is what a node agent has to know. Fields without a mark are required.
type Config struct {
	// Name is the name of the Node.
	Name string
	// Client should have no rate limit of its own: the agent writes only what changed.
	Client  kubernetes.Interface
	Runtime runtime.Service
	// RootDir is where volumes, logs and other files of pods are kept; it must survive a restart of the agent.
	RootDir string
	// Address is the node's own address, by which the API server and others reach it.
	Address netip.Addr
	// PodCIDR is where the addresses of the node's pods come from. Optional.
	PodCIDR netip.Prefix
	// CgroupRoot is the cgroup below which all pods of the node are, without a leading slash.
	CgroupRoot string

	// Cgroups makes that cgroup, and those of classes and pods below it. Optional: without it the runtime makes them as it likes, and CPU
	// requests count among the containers of one pod only.
	Cgroups Cgroups

	// Listener takes the connections of the node API; nil means that there is none. It is closed when Run returns.
	Listener net.Listener
	// Certificate is the node API's, or GetCertificate gives the one of the time; ClientCAs and ClientNames say who may use it: holders of a certificate by one of these authorities
	// with one of these common names.
	Certificate    tls.Certificate
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	ClientCAs      *x509.CertPool
	ClientNames    []string

	// StaticPods is a directory of manifests of pods that the node runs by itself. Optional.
	StaticPods string
	// Dial makes connections to addresses of pods, for probes. Optional: the agent's own network otherwise.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is optional: the real one otherwise.
	Clock clock.WithTicker
	// Labels are added to the Node's usual ones. Optional.
	Labels map[string]string
	// Taints are set when the Node is registered. Optional.
	Taints []v1.Taint
	// Capacity replaces what the machine has, by resource. Optional.
	Capacity v1.ResourceList
	// Reserved is taken off the capacity before pods may have it. Optional.
	Reserved v1.ResourceList
	// MaxPods is optional: 110.
	MaxPods int
	// Version is what nodeInfo tells as kubeletVersion. Optional: v1.37.2.
	Version string
	// ClusterDNS and ClusterDomain are what pods resolve names with; without them pods use the machine's resolv.conf. Optional.
	ClusterDNS    []netip.Addr
	ClusterDomain string
	// MemoryThreshold is the free memory in bytes below which a pod is evicted; 0 is 100 MiB, negative turns it off. Optional.
	MemoryThreshold int64
	// FreeMemory tells the machine's free memory. Optional: what the kernel says.
	FreeMemory func() (int64, error)
	// DiskThreshold is the free space in bytes of RootDir's file system below which unused images are removed, then a pod is evicted; 0 is a twentieth
	// of its size but no more than 2 GiB, negative turns it off. Optional.
	DiskThreshold int64
	// FreeDisk tells that free space. Optional: what the kernel says.
	FreeDisk func() (int64, error)
	// PIDThreshold is the number of processes that the machine must still be able to have, below it a pod is evicted; 0 is 500, negative turns
	// it off. Optional.
	PIDThreshold int64
	// FreePIDs tells how many processes the machine could still have. Optional: what the kernel says.
	FreePIDs func() (int64, error)
	// PodPIDs is how many processes a pod may have. Optional: any number.
	PodPIDs int64
	// LogMaxSize and LogMaxFiles bound each container's logs. Optional: 10 MiB and 5 files; a negative size turns rotation off.
	LogMaxSize  int64
	LogMaxFiles int
	// ImageGCHigh and ImageGCLow are percentages of disk usage: above the first unused images are removed until it is at the second.
	// Optional: images stay, as one expects of the machine of a developer.
	ImageGCHigh, ImageGCLow int
	// ParallelPulls is how many images are pulled at once. Optional: 4.
	ParallelPulls int
}

const (
	defaultMaxPods = 110
	defaultVersion = "v1.37.2"
	defaultPulls   = 4

	defaultMemoryThreshold = 100 << 20
	defaultPIDThreshold    = 500
	maxDiskThreshold       = 2 << 30
	defaultLogSize         = 10 << 20
	defaultLogFiles        = 5
)

func (c *Config) complete() error {
	for field, missing := range map[string]bool{
		"Name": c.Name == "", "Client": c.Client == nil, "Runtime": c.Runtime == nil, "RootDir": c.RootDir == "",
		"Address": !c.Address.IsValid(), "CgroupRoot": c.CgroupRoot == "",
	} {
		if missing {
			return fmt.Errorf("node agent: Config.%s is not set", field)
		}
	}
	if c.Listener != nil && (c.ClientCAs == nil || len(c.ClientNames) == 0 || len(c.Certificate.Certificate) == 0 && c.GetCertificate == nil) {
		return fmt.Errorf("node agent %s: a Listener needs Certificate or GetCertificate, ClientCAs and ClientNames, for the node API is not for everybody", c.Name)
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.MaxPods == 0 {
		c.MaxPods = defaultMaxPods
	}
	if c.Version == "" {
		c.Version = defaultVersion
	}
	if c.ParallelPulls == 0 {
		c.ParallelPulls = defaultPulls
	}
	if c.MemoryThreshold == 0 {
		c.MemoryThreshold = defaultMemoryThreshold
	}
	c.completeMeasures()
	if c.LogMaxSize == 0 {
		c.LogMaxSize = defaultLogSize
	}
	if c.LogMaxFiles == 0 {
		c.LogMaxFiles = defaultLogFiles
	}
	if c.ImageGCHigh > 0 && (c.ImageGCLow <= 0 || c.ImageGCLow > c.ImageGCHigh || c.ImageGCHigh > 100) {
		return fmt.Errorf("node agent %s: image collection needs 0 < ImageGCLow <= ImageGCHigh <= 100, not %d and %d", c.Name, c.ImageGCLow, c.ImageGCHigh)
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	return nil
}

// completeMeasures fills in how the machine is measured.
func (c *Config) completeMeasures() {
	if c.FreeMemory == nil {
		c.FreeMemory = freeMemory
	}
	if c.FreeDisk == nil {
		c.FreeDisk = func() (int64, error) {
			_, free, err := diskUsage(c.RootDir)
			return free, err
		}
	}
	if c.FreePIDs == nil {
		c.FreePIDs = freePIDs
	}
	if c.PIDThreshold == 0 {
		c.PIDThreshold = defaultPIDThreshold
	}
}
