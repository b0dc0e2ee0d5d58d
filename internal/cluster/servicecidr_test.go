package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A further network of services can be used once it is Ready, and does not go while a service has an address of it.
func TestNetworkOfServicesInUseStays(t *testing.T) {
	_, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := client.NetworkingV1().ServiceCIDRs().Create(ctx, &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.200.0.0/24"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitNetwork(ctx, t, client, metav1.ConditionTrue)
	_, err = client.CoreV1().Services("default").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ClusterIP: "10.200.0.7", Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.NetworkingV1().ServiceCIDRs().Delete(ctx, "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := awaitNetwork(ctx, t, client, metav1.ConditionFalse); n != nil && n.DeletionTimestamp == nil {
		t.Errorf("the network is not Ready without being deleted: %+v", n.Status)
	}
}

// awaitNetwork waits until the network's condition Ready has the status.
func awaitNetwork(ctx context.Context, t *testing.T, client kubernetes.Interface, want metav1.ConditionStatus) *networkingv1.ServiceCIDR {
	t.Helper()
	w, err := client.NetworkingV1().ServiceCIDRs().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=more"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		n, ok := event.Object.(*networkingv1.ServiceCIDR)
		if !ok {
			continue
		}
		if ready := meta.FindStatusCondition(n.Status.Conditions, networkingv1.ServiceCIDRConditionReady); ready != nil && ready.Status == want {
			return n
		}
	}
	t.Errorf("the network never had Ready=%s", want)
	return nil
}
