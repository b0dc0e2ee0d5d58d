package embedded

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/bayplan/bayplan/internal/node/network"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The annotations by which a pod limits its bandwidth, in bits a second.
const (
	ingressBandwidth = "kubernetes.io/ingress-bandwidth"
	egressBandwidth  = "kubernetes.io/egress-bandwidth"
)

// connect gives the pod its addresses, the node's ports that it wants and the bandwidth that it may have. On the node's network it has all of
// the node's.
func (r *Runtime) connect(ctx context.Context, s *sandbox) error {
	if s.namespaces().GetNetwork() == cri.NamespaceMode_NODE || r.config.Network == nil {
		return nil
	}
	id := s.record.ID
	addresses, err := r.config.Network.SetUp(ctx, id, r.pinPath(s, "net"))
	if err != nil {
		return fmt.Errorf("failed to set up the network: %w", err)
	}
	for _, address := range addresses {
		s.record.Addresses = append(s.record.Addresses, address.String())
	}
	if err := r.publishPorts(ctx, s); err != nil {
		return err
	}
	return r.shape(ctx, s)
}

func (r *Runtime) publishPorts(ctx context.Context, s *sandbox) error {
	ports, err := portMappings(s.config)
	if err != nil || len(ports) == 0 {
		return err
	}
	if err := r.config.Network.Publish(ctx, s.record.ID, ports); err != nil {
		return fmt.Errorf("failed to publish the pod's host ports: %w", err)
	}
	return nil
}

// portMappings are the ports of the node that the pod wants.
func portMappings(config *cri.PodSandboxConfig) ([]network.PortMapping, error) {
	var out []network.PortMapping
	for _, p := range config.GetPortMappings() {
		if p.HostPort == 0 {
			continue
		}
		mapping := network.PortMapping{Protocol: p.Protocol.String(), HostPort: uint16(p.HostPort), ContainerPort: uint16(p.ContainerPort)}
		if p.HostIp != "" {
			address, err := netip.ParseAddr(p.HostIp)
			if err != nil {
				return nil, fmt.Errorf("host port %d: hostIP: %w", p.HostPort, err)
			}
			mapping.HostIP = address
		}
		out = append(out, mapping)
	}
	return out, nil
}

func (r *Runtime) shape(ctx context.Context, s *sandbox) error {
	ingress, err := bandwidth(s.config, ingressBandwidth)
	if err != nil {
		return err
	}
	egress, err := bandwidth(s.config, egressBandwidth)
	if err != nil || ingress == 0 && egress == 0 {
		return err
	}
	if err := r.config.Network.Shape(ctx, s.record.ID, ingress, egress); err != nil {
		return fmt.Errorf("failed to limit the pod's bandwidth: %w", err)
	}
	return nil
}

// The bounds of a bandwidth, as Kubernetes has them.
var (
	minBandwidth = resource.MustParse("1k")
	maxBandwidth = resource.MustParse("1P")
)

// bandwidth is the pod's limit of that name, 0 if it has none.
func bandwidth(config *cri.PodSandboxConfig, annotation string) (uint64, error) {
	text, set := config.GetAnnotations()[annotation]
	if !set {
		return 0, nil
	}
	limit, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %q is no quantity, such as 10M: %w", annotation, text, err)
	}
	if limit.Cmp(minBandwidth) < 0 || limit.Cmp(maxBandwidth) > 0 {
		return 0, fmt.Errorf("annotation %s: %s is not from %s to %s bits a second", annotation, text, minBandwidth.String(), maxBandwidth.String())
	}
	return uint64(limit.Value()), nil
}
