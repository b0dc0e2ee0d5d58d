package apiserver_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// makeQuota makes a quota with the status that the controller gives it, of which nothing is used, and waits until admission knows of it.
func (a *api) makeQuota(t *testing.T, hard corev1.ResourceList) {
	t.Helper()
	quotas := a.client.CoreV1().ResourceQuotas("default")
	quota, err := quotas.Create(t.Context(), &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}, metav1.CreateOptions{})
	must(t, err)
	quota.Status.Hard, quota.Status.Used = hard, corev1.ResourceList{}
	for name := range hard {
		quota.Status.Used[name] = list("x", "0")["x"]
	}
	_, err = quotas.UpdateStatus(t.Context(), quota, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, func() bool {
		probe := newPod("probe")
		probe.Spec.Containers[0].Resources.Requests = list("cpu", "1000")
		_, err := a.client.CoreV1().Pods("default").Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsForbidden(err)
	}, "the quota is not known")
}

// TestQuota: of many writers at the same time exactly as many succeed as the quota allows, and its status tells what is used.
func TestQuota(t *testing.T) {
	const allowed, writers = 5, 24
	a := startAPI(t)
	a.makeQuota(t, list("requests.cpu", "500m", "configmaps", fmt.Sprint(allowed), "count/deployments.apps", "0"))
	var made atomic.Int32
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}}
			_, err := a.client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
			switch {
			case err == nil:
				made.Add(1)
			case !apierrors.IsForbidden(err):
				t.Errorf("neither made nor forbidden: %v", err)
			}
		})
	}
	group.Wait()
	if made.Load() != allowed {
		t.Errorf("%d of %d were made", made.Load(), allowed)
	}
	quota, err := a.client.CoreV1().ResourceQuotas("default").Get(t.Context(), "q", metav1.GetOptions{})
	must(t, err)
	if used := quota.Status.Used[corev1.ResourceConfigMaps]; used.Value() != allowed {
		t.Errorf("used: %s", used.String())
	}
	_, err = a.client.CoreV1().Pods("default").Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	must(t, err)
	big := newPod("big")
	big.Spec.Containers[0].Resources.Requests = list("cpu", "401m")
	_, err = a.client.CoreV1().Pods("default").Create(t.Context(), big, metav1.CreateOptions{})
	wantForbidden(t, err, `pods "big" is forbidden: exceeded quota: q, requested: requests.cpu=401m, used: requests.cpu=100m, limited: requests.cpu=500m`)
	big.Spec.Containers[0].Resources.Requests = nil
	_, err = a.client.CoreV1().Pods("default").Create(t.Context(), big, metav1.CreateOptions{})
	wantForbidden(t, err, "failed quota: q: must specify requests.cpu for: c")
	// The quota of another namespace limits nothing here.
	_, err = a.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = a.client.CoreV1().ConfigMaps("other").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{})
	must(t, err)
}
