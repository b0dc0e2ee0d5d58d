package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/apiserver/authorization"
	"github.com/bayplan/bayplan/internal/fleet"
	"github.com/bayplan/bayplan/internal/fleet/nodeapi"
	"github.com/bayplan/bayplan/internal/pki"
)

// The addresses of simulated nodes and their pods. They are data, and lead to nothing but the fleet's own server inside of this process.
var (
	simulatedNodeCIDR = netip.MustParsePrefix("172.28.0.0/15")
	simulatedPodCIDR  = netip.MustParsePrefix("10.128.0.0/10")
)

// populateTimeout bounds the wait for the simulated nodes at start; each 1,000 of them lengthen it.
const populateTimeout = time.Minute

// Simulated says which nodes there are behind which no machine stands, and what the pods on them do.
type Simulated struct {
	// Groups are the nodes that there shall be, beside those that are there.
	Groups []v1alpha1.NodeGroup
	// Rules say what pods do.
	Rules []v1alpha1.PodBehavior
	// Seed decides what is left to chance.
	Seed uint64
	// LeasePeriod is the time between two heartbeats of a node; fleet.DefaultLeasePeriod when it is zero.
	LeasePeriod time.Duration
}

func (s *Simulated) count() int {
	n := 0
	for i := range s.Groups {
		n += int(s.Groups[i].Spec.Count)
	}
	return n
}

// simulation is what the cluster keeps of its fleet: the network to its nodes, which is there before and after the fleet itself.
type simulation struct {
	network *nodeapi.Network
	// populated is closed when the nodes of the groups are there.
	populated chan struct{}
	once      sync.Once

	mu           sync.Mutex
	certificates map[netip.Addr]*tls.Certificate
}

// openSimulation leads the API server's connections to simulated nodes to the fleet.
func (c *Cluster) openSimulation(plane *controlPlaneConfig) {
	if c.config.Simulated == nil {
		return
	}
	network := nodeapi.NewNetwork(simulatedNodeCIDR, simulatedPodCIDR)
	c.simulation = &simulation{network: network, populated: make(chan struct{}), certificates: map[netip.Addr]*tls.Certificate{}}
	plane.dial = network.Around(plane.dial)
}

// simulate makes the fleet, which shares the informers of the other parts, and returns what runs it.
func (c *Cluster) simulate(p *parts) (func(context.Context), error) {
	if c.simulation == nil {
		return func(context.Context) {}, nil
	}
	config := c.control.server.ClientConfig(&user.DefaultInfo{Name: authorization.Fleet})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config.ContentConfig = c.admin.ContentConfig // objects without Go types are in JSON
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s := c.config.Simulated
	f, err := fleet.New(fleet.Config{
		Client: client, Dynamic: objects, Informers: p.shared, Groups: s.Groups, Rules: s.Rules, Seed: s.Seed, LeasePeriod: s.LeasePeriod,
		Recorder: p.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: fleet.Name}),
		NodeCIDR: simulatedNodeCIDR, PodCIDR: simulatedPodCIDR,
	})
	if err != nil {
		return nil, err
	}
	server := &nodeapi.Server{
		Source: f, Network: c.simulation.network, Clock: clock.RealClock{}, Certificate: c.simulatedCertificate,
		ClientCAs: c.control.authority.Pool(), ClientNames: []string{KubeletClientUser},
	}
	return func(ctx context.Context) { c.simulation.run(ctx, f, server) }, nil
}

func (s *simulation) run(ctx context.Context, f *fleet.Fleet, server *nodeapi.Server) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		if err := server.Run(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "The node API of the simulated nodes ended")
		}
	})
	running.Go(func() {
		select {
		case <-f.Populated():
			s.once.Do(func() { close(s.populated) })
		case <-ctx.Done():
		}
	})
	f.Run(ctx)
}

// HasNodes reports whether there is any node, real or simulated.
func (c *Cluster) HasNodes(ctx context.Context) (bool, error) {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return false, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil && len(list.Items) > 0, err
}

// awaitSimulated returns when the simulated nodes that were asked for are Ready.
func (c *Cluster) awaitSimulated(ctx context.Context) error {
	if c.simulation == nil || c.config.Simulated.count() == 0 {
		return nil
	}
	count := c.config.Simulated.count()
	ctx, cancel := context.WithTimeout(ctx, populateTimeout+time.Duration(count/1000)*10*time.Second)
	defer cancel()
	select {
	case <-c.simulation.populated:
		c.times.mark(fmt.Sprintf("%d simulated nodes", count))
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the simulated nodes are not there yet, see the log: %w", context.Cause(ctx))
	}
}

// maxCertificates bounds how many nodes' certificates are remembered.
const maxCertificates = 1000

// simulatedCertificate is what the node with an address shows to the API server.
func (c *Cluster) simulatedCertificate(address netip.Addr) (*tls.Certificate, error) {
	s := c.simulation
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.certificates[address]; known != nil {
		return known, nil
	}
	identity, err := c.control.authority.Identity("nodes-simulated", pki.Request{
		User: authorization.Fleet, Addresses: []net.IP{address.AsSlice()},
	})
	if err != nil {
		return nil, err
	}
	certificate, err := identity.TLS()
	if err != nil {
		return nil, err
	}
	if len(s.certificates) >= maxCertificates {
		clear(s.certificates)
	}
	s.certificates[address] = &certificate
	return &certificate, nil
}
