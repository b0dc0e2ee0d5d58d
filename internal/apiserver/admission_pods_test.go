package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPodAdmission: a pod leaves the server with account, token, priority and tolerations.
func TestPodAdmission(t *testing.T) {
	a := startAPI(t)
	pods := a.client.CoreV1().Pods("default")
	pod, err := pods.Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	must(t, err)
	spec := pod.Spec
	if spec.ServiceAccountName != "default" || len(spec.Volumes) != 1 || !strings.HasPrefix(spec.Volumes[0].Name, "kube-api-access-") ||
		len(spec.Containers[0].VolumeMounts) != 1 || spec.Containers[0].VolumeMounts[0].Name != spec.Volumes[0].Name {
		t.Errorf("no account or no token: %+v", spec)
	}
	if ptr.Deref(spec.Priority, -1) != 0 || ptr.Deref(spec.PreemptionPolicy, "") != corev1.PreemptLowerPriority || len(spec.Tolerations) != 2 {
		t.Errorf("no priority or no tolerations: %+v", spec)
	}
	if spec.Volumes[0].Projected.Sources[2].DownwardAPI.Items[0].FieldRef.APIVersion != "v1" {
		t.Errorf("the volume is not as its defaults would be: %+v", spec.Volumes[0].Projected)
	}
	// Who reads and writes the pod, without what was filled in too, changes nothing of that.
	pod.Labels["x"], pod.Spec.Priority, pod.Spec.PreemptionPolicy = "y", nil, nil
	updated, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	if updated.Generation != 1 || updated.Spec.Priority == nil {
		t.Errorf("an update of labels is one of the spec: %+v", updated)
	}
	important := newPod("q")
	important.Spec.PriorityClassName = "system-node-critical"
	important, err = pods.Create(t.Context(), important, metav1.CreateOptions{})
	must(t, err)
	if *important.Spec.Priority != 2000001000 {
		t.Errorf("priority of %s: %d", important.Spec.PriorityClassName, *important.Spec.Priority)
	}
	stranger := newPod("r")
	stranger.Spec.ServiceAccountName = "stranger"
	_, err = pods.Create(t.Context(), stranger, metav1.CreateOptions{})
	wantForbidden(t, err, `pods "r" is forbidden: error looking up service account default/stranger: serviceaccount "stranger" not found`)
}

// TestDefaultClasses: classes that are the default are filled in, and a second default priority class is refused.
func TestDefaultClasses(t *testing.T) {
	a := startAPI(t)
	_, err := a.client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "usual", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "example.org/p",
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = a.client.NetworkingV1().IngressClasses().Create(t.Context(), &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "usual", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}},
		Spec:       networkingv1.IngressClassSpec{Controller: "example.org/c"},
	}, metav1.CreateOptions{})
	must(t, err)
	classes := a.client.SchedulingV1().PriorityClasses()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 7, GlobalDefault: true}
	_, err = classes.Create(t.Context(), class, metav1.CreateOptions{})
	must(t, err)
	eventually(t, func() bool {
		second := class.DeepCopy()
		second.Name = "second"
		_, err = classes.Create(t.Context(), second, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	}, "the default priority class is not known")
	wantForbidden(t, err, "PriorityClass usual is already marked as default. Only one default can exist")
	eventually(t, func() bool {
		claim, err := a.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), unnamedClaim(), metav1.CreateOptions{})
		must(t, err)
		return ptr.Deref(claim.Spec.StorageClassName, "") == "usual"
	}, "the default storage class is not known")
	eventually(t, func() bool {
		ingress, err := a.client.NetworkingV1().Ingresses("default").Create(t.Context(), &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "i-"},
			Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}},
		}, metav1.CreateOptions{})
		must(t, err)
		return ptr.Deref(ingress.Spec.IngressClassName, "") == "usual"
	}, "the default ingress class is not known")
}

// TestNodeAdmission: a node begins with the taint of one that is not ready, and a pod on it is not resized beyond what it has.
func TestNodeAdmission(t *testing.T) {
	a := startAPI(t)
	node, err := a.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, metav1.CreateOptions{})
	must(t, err)
	if len(node.Spec.Taints) != 1 || node.Spec.Taints[0].Key != corev1.TaintNodeNotReady {
		t.Errorf("taints: %v", node.Spec.Taints)
	}
	node.Status.Allocatable = list("cpu", "1", "memory", "1Gi")
	_, err = a.client.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	must(t, err)
	pod := newPod("p")
	pod.Spec.NodeName = "one"
	pods := a.client.CoreV1().Pods("default")
	pod, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	pod.Spec.Containers[0].Resources.Requests = list("cpu", "2")
	_, err = pods.UpdateResize(t.Context(), "p", pod, metav1.UpdateOptions{})
	wantForbidden(t, err, "node didn't have enough allocatable resources: cpu, requested: 2000, allocatable: 1000")
}

func unnamedClaim() *corev1.PersistentVolumeClaim {
	claim := newClaim("", "1Gi")
	claim.GenerateName = "c-"
	return claim
}
