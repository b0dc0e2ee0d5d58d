package hostport

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestClash(t *testing.T) {
	of := func(ports ...corev1.ContainerPort) []Port { return Of(&corev1.Container{Ports: ports}) }
	web := of(corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{ContainerPort: 9})
	if len(web) != 1 {
		t.Fatalf("%+v: a port of the container alone is none of the node", web)
	}
	for _, test := range []struct {
		port corev1.ContainerPort
		want bool
	}{
		{corev1.ContainerPort{HostPort: 80}, true},
		{corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolTCP}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "0.0.0.0"}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}, true},
		{corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolUDP}, false},
		{corev1.ContainerPort{HostPort: 81}, false},
		{corev1.ContainerPort{ContainerPort: 80}, false},
	} {
		if got := Clash(web, of(test.port)); got != test.want {
			t.Errorf("%+v: %v, want %v", test.port, got, test.want)
		}
	}
	one, two := of(corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}), of(corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.2"})
	if Clash(one, two) || !Clash(one, one) || Clash(nil, one) || Clash(one, nil) {
		t.Error("addresses do not tell ports apart")
	}
}
