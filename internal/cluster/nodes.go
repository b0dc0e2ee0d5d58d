package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"strconv"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/apiserver/authorization"
	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/node"
	"github.com/bayplan/bayplan/internal/node/cgroup"
	"github.com/bayplan/bayplan/internal/node/network"
	"github.com/bayplan/bayplan/internal/node/runtime/embedded"
	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/pki"
)

// startNodes starts the cluster's nodes side by side and returns when all are Ready.
func (c *Cluster) startNodes(ctx context.Context) error {
	images, err := image.Open(ImagesDir(c.data.Path()))
	if err != nil {
		return err
	}
	if err := c.endFormerNodes(ctx, images); err != nil {
		return err
	}
	nodes := make([]*runningNode, c.config.Nodes)
	errs := make([]error, c.config.Nodes)
	var starting sync.WaitGroup
	for i := range nodes {
		nodes[i] = &runningNode{name: nodeName(i + 1), pods: nodePods(i + 1)}
		c.onStop(nodes[i].stop)
		starting.Go(func() { errs[i] = nodes[i].start(ctx, c, images) })
	}
	starting.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.times.mark("nodes")
	return nil
}

// runningNode is one node of this process: its place in the network, its container runtime and its agent.
type runningNode struct {
	name string
	pods netip.Prefix

	place   *network.Node
	runtime *embedded.Runtime
	cgroups *cgroup.Node
	agent   *node.Node
	client  kubernetes.Interface
	cancel  context.CancelFunc
	ended   chan struct{}
}

func (n *runningNode) start(ctx context.Context, c *Cluster, images *image.Store) error {
	if err := n.open(ctx, c, images); err != nil {
		return err
	}
	config, err := n.agentConfig(ctx, c)
	if err != nil {
		return err
	}
	n.client = config.Client
	if n.agent, err = node.New(ctx, config); err != nil {
		return err
	}
	n.run(ctx)
	return awaitNode(ctx, n.client, n.name)
}

// cgroup is the cgroup of all that runs on the node.
func (n *runningNode) cgroup(c *Cluster) string {
	return path.Join("bayplan", clusterID(c.data.Path()), n.name)
}

// open makes the node's place and its runtime, or takes over those that a killed process left, with the pods that go on in them.
func (n *runningNode) open(ctx context.Context, c *Cluster, images *image.Store) error {
	hierarchies, err := cgroup.Open()
	if err != nil {
		return err
	}
	if n.place, err = c.fabric.AddNode(ctx, n.name, n.pods); err != nil {
		return err
	}
	n.cgroups = cgroup.NewNode(hierarchies, n.cgroup(c))
	n.runtime, err = embedded.New(ctx, embedded.Config{
		Root: c.data.Path("nodes", n.name, "runtime"), RunDir: filepath.Join(runRoot, clusterID(c.data.Path()), n.name),
		CgroupParent: n.cgroup(c), Images: images, Network: n.place, HostNetworkNamespace: n.place.Namespace().Path(),
	})
	if err != nil {
		return fmt.Errorf("container runtime of %s: %w", n.name, err)
	}
	sandboxes, err := n.sandboxes(ctx)
	if err != nil {
		return err
	}
	return n.place.Retain(ctx, sandboxes)
}

// sandboxes are the ids of the sandboxes that the runtime has.
func (n *runningNode) sandboxes(ctx context.Context) ([]string, error) {
	list, err := n.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("container runtime of %s: %w", n.name, err)
	}
	ids := make([]string, len(list.Items))
	for i, s := range list.Items {
		ids[i] = s.Id
	}
	return ids, nil
}

func (n *runningNode) agentConfig(ctx context.Context, c *Cluster) (node.Config, error) {
	client, err := kubernetes.NewForConfig(c.control.server.ClientConfig(&user.DefaultInfo{
		Name: authorization.NodeUserPrefix + n.name, Groups: []string{authorization.NodesGroup, user.AllAuthenticated},
	}))
	if err != nil {
		return node.Config{}, err
	}
	certificate, err := n.certificate(c.control.authority)
	if err != nil {
		return node.Config{}, err
	}
	address := net.JoinHostPort(n.place.Address().String(), strconv.Itoa(relay.DefaultNodePort))
	listener, err := n.place.Namespace().Listen(ctx, "tcp", address)
	return node.Config{
		Name: n.name, Client: client, Runtime: n.runtime, RootDir: c.data.Path("nodes", n.name),
		Address: n.place.Address(), PodCIDR: n.place.PodCIDR(), CgroupRoot: n.cgroup(c), Cgroups: n.cgroups,
		Listener: listener, Certificate: certificate, ClientCAs: c.control.authority.Pool(), ClientNames: []string{KubeletClientUser},
		Dial: n.place.Namespace().Dial, StaticPods: c.data.Path("nodes", n.name, "manifests"),
	}, err
}

// certificate is what the node shows to the API server.
func (n *runningNode) certificate(authority *pki.Authority) (tls.Certificate, error) {
	identity, err := authority.Identity("node-"+n.name, pki.Request{
		User: authorization.NodeUserPrefix + n.name, Groups: []string{authorization.NodesGroup},
		Names: []string{n.name}, Addresses: []net.IP{n.place.Address().AsSlice()},
	})
	if err != nil {
		return tls.Certificate{}, err
	}
	return identity.TLS()
}

func (n *runningNode) run(ctx context.Context) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	n.cancel, n.ended = cancel, make(chan struct{})
	go func() {
		defer close(n.ended)
		if err := n.agent.Run(running); err != nil {
			klog.FromContext(running).Error(err, "The node agent ended", "node", n.name)
		}
	}()
}

// stop ends the node's pods in order, and then whatever start got to.
func (n *runningNode) stop(ctx context.Context) error {
	var errs []error
	if n.cancel != nil {
		n.cancel()
		<-n.ended
		errs = append(errs, n.agent.Shutdown(ctx))
	}
	if n.runtime != nil {
		errs = append(errs, n.runtime.Close(ctx))
	}
	if err := errors.Join(errs...); err != nil || n.cgroups == nil {
		return err
	}
	return n.cgroups.Remove()
}
