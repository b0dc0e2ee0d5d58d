package testcluster_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// player is the least that a node does: a pod that comes to it is ready at once, one that ends by itself ends at once, and one that is to go goes.
type player struct {
	t      *testing.T
	client kubernetes.Interface
}

// play makes nodes and plays them until the test ends.
func play(t *testing.T, client kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110")}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{
				Capacity: resources, Allocatable: resources,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Played", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
			},
		}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p := &player{t, client}
	factory := informers.NewSharedInformerFactory(client, 0)
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.changed, UpdateFunc: func(_, pod any) { p.changed(pod) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		factory.Start(ctx.Done())
		<-ctx.Done()
		factory.Shutdown()
	})
	running.Go(func() { wait.UntilWithContext(ctx, func(ctx context.Context) { p.beat(ctx, names) }, 10*time.Second) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

// beat is the nodes' sign of life, without which they count as lost after a while.
func (p *player) beat(ctx context.Context, names []string) {
	for _, name := range names {
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","lastHeartbeatTime":%q}]}}`, time.Now().UTC().Format(time.RFC3339))
		if _, err := p.client.CoreV1().Nodes().PatchStatus(ctx, name, []byte(patch)); err != nil && ctx.Err() == nil {
			p.t.Errorf("heartbeat of node %s: %v", name, err)
		}
	}
}

func (p *player) changed(obj any) {
	pod := obj.(*corev1.Pod).DeepCopy()
	pods := p.client.CoreV1().Pods(pod.Namespace)
	var err error
	switch {
	case pod.Spec.NodeName == "":
		return
	case pod.DeletionTimestamp != nil:
		err = pods.Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	case pod.Status.Phase == corev1.PodPending:
		start(pod)
		_, err = pods.UpdateStatus(context.Background(), pod, metav1.UpdateOptions{})
	}
	// A conflict means that the pod has changed, which brings it here again.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		p.t.Errorf("play pod %s: %v", pod.Name, err)
	}
}

func start(pod *corev1.Pod) {
	now := metav1.Now()
	ends := pod.Spec.RestartPolicy == corev1.RestartPolicyNever
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	ready := corev1.ConditionTrue
	if ends {
		pod.Status.Phase, ready = corev1.PodSucceeded, corev1.ConditionFalse
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: !ends, State: state})
	}
}
