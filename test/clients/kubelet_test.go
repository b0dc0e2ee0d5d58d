package clients

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/testcluster"
)

// patience is how long one of these tests may take, on a machine that has other things to do too; alone it takes seconds.
const patience = 2 * time.Minute

// testContext ends with the test, and after patience.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually looks until something is so that other parts bring about, each in its own time.
func eventually(ctx context.Context, t *testing.T, what string, condition wait.ConditionWithContextFunc) {
	t.Helper()
	if err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, condition); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// startWithNode starts a cluster with a node that tells of each of its pods that it is ready, or, if the pod is not restarted, that it has succeeded.
func startWithNode(ctx context.Context, t *testing.T) *testcluster.Cluster {
	cluster := testcluster.Start(t)
	client := kubernetes.NewForConfigOrDie(cluster.Config())
	now := metav1.Now()
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("50")}
	_, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: now, LastTransitionTime: now}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	pods, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=node"})
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != "DELETED" {
				if err := report(ctx, client, pod); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					t.Errorf("status of pod %s: %v", pod.Name, err)
				}
			}
		}
	}()
	t.Cleanup(func() {
		pods.Stop()
		<-ended
	})
	return cluster
}

// report says what a node says of a pod.
func report(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case pod.Status.Phase != corev1.PodPending:
		return nil
	}
	pod = pod.DeepCopy()
	now := metav1.Now()
	container := corev1.ContainerStatus{Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		pod.Status.Phase = corev1.PodSucceeded
		container.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}
	} else {
		pod.Status.Phase = corev1.PodRunning
		container.Ready, container.State.Running = true, &corev1.ContainerStateRunning{StartedAt: now}
		for _, condition := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
	}
	pod.Status.StartTime, pod.Status.ContainerStatuses = &now, []corev1.ContainerStatus{container}
	_, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}
