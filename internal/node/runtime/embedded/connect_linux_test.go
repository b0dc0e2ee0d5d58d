package embedded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestSandboxPortsAndBandwidth: what the pod wants of the node's ports and of bandwidth reaches the network; without any, nothing is asked.
func TestSandboxPortsAndBandwidth(t *testing.T) {
	f := newFixture(t)
	network := &fakeNetwork{}
	f.r.config.Network, f.config.Network = network, network
	plain := f.pod()
	pod := f.pod(func(c *cri.PodSandboxConfig) {
		c.PortMappings = []*cri.PortMapping{
			{ContainerPort: 80}, {ContainerPort: 80, HostPort: 8080}, {Protocol: cri.Protocol_UDP, ContainerPort: 53, HostPort: 53, HostIp: "10.0.0.2"},
		}
		c.Annotations = map[string]string{ingressBandwidth: "10M"}
	})
	want := []string{"set up " + plain, "set up " + pod, "publish " + pod + " [TCP *:8080 to 80 UDP 10.0.0.2:53 to 53]", "shape " + pod + " 10000000 0"}
	if diff := cmp.Diff(want, network.calls); diff != "" {
		t.Error(diff)
	}
}

func TestSandboxRefusesImpossibleNetworks(t *testing.T) {
	f := newFixture(t)
	network := &fakeNetwork{}
	f.r.config.Network, f.config.Network = network, network
	for want, change := range map[string]func(*cri.PodSandboxConfig){
		`annotation kubernetes.io/egress-bandwidth: "fast" is no quantity, such as 10M`: func(c *cri.PodSandboxConfig) {
			c.Annotations = map[string]string{egressBandwidth: "fast"}
		},
		"annotation kubernetes.io/ingress-bandwidth: 1 is not from 1k to 1P bits a second": func(c *cri.PodSandboxConfig) {
			c.Annotations = map[string]string{ingressBandwidth: "1"}
		},
		"host port 80: hostIP: ": func(c *cri.PodSandboxConfig) {
			c.PortMappings = []*cri.PortMapping{{ContainerPort: 80, HostPort: 80, HostIp: "here"}}
		},
	} {
		if _, err := f.r.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: f.podConfig(change)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if last := network.calls[len(network.calls)-1]; !strings.HasPrefix(last, "tear down ") {
			t.Errorf("%s: the network was not taken away: %v", want, network.calls)
		}
	}
}
