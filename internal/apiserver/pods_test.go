package apiserver_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}}},
	}
}

// runPod makes a pod that runs and is ready, or not.
func runPod(t *testing.T, a *api, name string, ready corev1.ConditionStatus) *corev1.Pod {
	t.Helper()
	pods := a.client.CoreV1().Pods("default")
	pod, err := pods.Create(t.Context(), newPod(name), metav1.CreateOptions{})
	must(t, err)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	pod, err = pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{})
	must(t, err)
	return pod
}

// evict asks once: a client otherwise waits and asks again, as the server tells it to.
func evict(t *testing.T, a *api, name string) error {
	return a.client.CoreV1().RESTClient().Post().MaxRetries(0).Namespace("default").Resource("pods").Name(name).SubResource("eviction").
		Body(&policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}).Do(t.Context()).Error()
}

func TestEviction(t *testing.T) {
	a := startAPI(t)
	budgets := a.client.PolicyV1().PodDisruptionBudgets("default")
	for _, name := range []string{"p1", "p2", "p3"} {
		runPod(t, a, name, corev1.ConditionTrue)
	}
	runPod(t, a, "sick", corev1.ConditionFalse)
	budget, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
	}, metav1.CreateOptions{})
	must(t, err)

	err = evict(t, a, "p1")
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(asJSON(t, err), "is still being processed by the server") {
		t.Errorf("while the budget is new: %v", asJSON(t, err))
	}
	budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, DisruptionsAllowed: 1, CurrentHealthy: 3, DesiredHealthy: 2, ExpectedPods: 4}
	_, err = budgets.UpdateStatus(t.Context(), budget, metav1.UpdateOptions{})
	must(t, err)
	must(t, evict(t, a, "p1"))
	if _, err := a.client.CoreV1().Pods("default").Get(t.Context(), "p1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the pod is still there: %v", err)
	}
	budget, err = budgets.Get(t.Context(), "b", metav1.GetOptions{})
	must(t, err)
	if _, ok := budget.Status.DisruptedPods["p1"]; !ok || budget.Status.DisruptionsAllowed != 0 {
		t.Errorf("budget: %+v", budget.Status)
	}
	err = evict(t, a, "p2")
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("over the budget: %v", err)
	}
	// A pod that is not ready may go while enough others are healthy.
	must(t, evict(t, a, "sick"))
	second := budget.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Name: "b2"}
	_, err = budgets.Create(t.Context(), second, metav1.CreateOptions{})
	must(t, err)
	if err := evict(t, a, "p2"); !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), "more than one PodDisruptionBudget") {
		t.Errorf("two budgets: %v", err)
	}
}

func TestResize(t *testing.T) {
	a := startAPI(t)
	pods := a.client.CoreV1().Pods("default")
	pod := runPod(t, a, "p", corev1.ConditionTrue)
	more := pod.DeepCopy()
	more.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("200m")
	more.Spec.Containers[0].Image = "other"
	more.Labels["x"] = "y"
	resized, err := pods.UpdateResize(t.Context(), "p", more, metav1.UpdateOptions{})
	must(t, err)
	c := resized.Spec.Containers[0]
	if c.Resources.Requests.Cpu().String() != "200m" || c.Image != "i" || resized.Labels["x"] != "" || resized.Generation != pod.Generation+1 {
		t.Errorf("resized: %+v, generation %d", c, resized.Generation)
	}
	for name, change := range map[string]func(*corev1.Pod){
		"resource requests cannot be removed": func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil },
		"only cpu and memory resources are mutable": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["ephemeral-storage"] = resource.MustParse("1Mi")
		},
		"Pod QOS Class may not change as a result of resizing": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
			p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests
		},
	} {
		bad := resized.DeepCopy()
		change(bad)
		if _, err := pods.UpdateResize(t.Context(), "p", bad, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}

func TestEphemeralContainers(t *testing.T) {
	a := startAPI(t)
	pods := a.client.CoreV1().Pods("default")
	pod := runPod(t, a, "p", corev1.ConditionTrue)
	add := func(pod *corev1.Pod, e corev1.EphemeralContainer) (*corev1.Pod, error) {
		changed := pod.DeepCopy()
		changed.Spec.EphemeralContainers = append(changed.Spec.EphemeralContainers, e)
		return pods.UpdateEphemeralContainers(t.Context(), "p", changed, metav1.UpdateOptions{})
	}
	debug := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}, TargetContainerName: "c"}
	with, err := add(pod, debug)
	must(t, err)
	if len(with.Spec.EphemeralContainers) != 1 || with.Spec.EphemeralContainers[0].TerminationMessagePath == "" {
		t.Errorf("containers: %+v", with.Spec.EphemeralContainers)
	}
	debug.Name, debug.TargetContainerName = "e", "nobody"
	if _, err := add(with, debug); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "targetContainerName") {
		t.Errorf("a target that is not there: %v", err)
	}
	gone := with.DeepCopy()
	gone.Spec.EphemeralContainers = nil
	if _, err := pods.UpdateEphemeralContainers(t.Context(), "p", gone, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "may not be removed") {
		t.Errorf("taking one away: %v", err)
	}
}
