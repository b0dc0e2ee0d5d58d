// Package tainteviction deletes pods from nodes with NoExecute taints that they do not tolerate, or no longer: tolerationSeconds count from
// the moment at which the taint was added. Pod and node events lead to syncs of the pods concerned. See README.md for the rules.
package tainteviction

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "taint-eviction-controller"

var (
	deletions = controller.Counter("taint_eviction_controller", "pod_deletions_total", "Pods that were deleted because of a taint.")
	latency   = controller.Histogram("taint_eviction_controller", "pod_deletion_duration_seconds", "Time from when a taint came to count for a pod to the pod's deletion.",
		[]float64{0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240})
)

// Controller deletes pods from tainted nodes.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	recorder record.EventRecorder
	clock    clock.PassiveClock
	pods     corelisters.PodLister
	nodes    corelisters.NodeLister
	podIndex cache.Indexer
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	core := deps.Informers.Core().V1()
	if err := controller.IndexByNode(core.Pods().Informer()); err != nil {
		return nil, err
	}
	c := &Controller{
		client: deps.Client, recorder: deps.Recorder("taint-eviction-controller"), clock: deps.Clock,
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), podIndex: core.Pods().Informer().GetIndexer(),
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(core.Nodes().Informer(), controller.Handlers[*corev1.Node]{
		Add:    func(node *corev1.Node) { c.nodeChanged(nil, node) },
		Update: func(old, node *corev1.Node) { c.nodeChanged(noExecute(old), node) },
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(core.Pods().Informer(), controller.Handlers[*corev1.Pod]{Add: c.podAdded, Update: c.podUpdated})
}

// noExecute are the taints that concern running pods.
func noExecute(node *corev1.Node) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectNoExecute })
}

func (c *Controller) nodeChanged(before []corev1.Taint, node *corev1.Node) {
	if after := noExecute(node); len(after) == 0 || equality.Semantic.DeepEqual(before, after) {
		return
	}
	for _, pod := range controller.PodsOnNode(c.podIndex, node.Name) {
		c.AddObject(pod)
	}
}

func (c *Controller) podAdded(pod *corev1.Pod) {
	if node, err := c.nodes.Get(pod.Spec.NodeName); err == nil && len(noExecute(node)) > 0 {
		c.AddObject(pod)
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.Spec.NodeName != pod.Spec.NodeName || !equality.Semantic.DeepEqual(old.Spec.Tolerations, pod.Spec.Tolerations) {
		c.podAdded(pod)
	}
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	node, err := c.nodes.Get(pod.Spec.NodeName)
	if err != nil || pod.DeletionTimestamp != nil {
		return controller.IgnoreNotFound(err)
	}
	until, forEver := toleratedUntil(pod, noExecute(node), c.clock.Now())
	switch wait := until.Sub(c.clock.Now()); {
	case forEver:
		return nil
	case wait > 0:
		c.AddAfter(key, wait)
		return nil
	}
	return c.evict(ctx, pod, until)
}

// toleratedUntil is until when the pod tolerates all of the taints: the earliest end among them, each counted from when the taint was added.
func toleratedUntil(pod *corev1.Pod, taints []corev1.Taint, now time.Time) (until time.Time, forEver bool) {
	forEver = true
	for i := range taints {
		end, always := tolerationEnd(pod, &taints[i], now)
		if !always && (forEver || end.Before(until)) {
			until, forEver = end, false
		}
	}
	return until, forEver
}

// tolerationEnd is until when the pod tolerates one taint. Of several tolerations the shortest counts.
func tolerationEnd(pod *corev1.Pod, taint *corev1.Taint, now time.Time) (end time.Time, always bool) {
	since, tolerated := now, false
	if taint.TimeAdded != nil {
		since = taint.TimeAdded.Time
	}
	always = true
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		if !controller.Tolerates(t, taint) {
			continue
		}
		tolerated = true
		if t.TolerationSeconds == nil {
			continue
		}
		if at := since.Add(time.Duration(max(0, *t.TolerationSeconds)) * time.Second); always || at.Before(end) {
			end, always = at, false
		}
	}
	if !tolerated {
		return now, false
	}
	return end, always
}

// evict says in the pod's conditions why it goes, and deletes it.
func (c *Controller) evict(ctx context.Context, pod *corev1.Pod, due time.Time) error {
	c.recorder.Eventf(pod, corev1.EventTypeNormal, "TaintManagerEviction", "Marking for deletion Pod %s/%s", pod.Namespace, pod.Name)
	pods := c.client.CoreV1().Pods(pod.Namespace)
	if controller.PodCondition(pod, corev1.DisruptionTarget) == nil {
		updated := pod.DeepCopy()
		updated.Status.Conditions = append(updated.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByTaintManager",
			Message: "Taint manager: deleting due to NoExecute taint", LastTransitionTime: metav1.NewTime(c.clock.Now()),
		})
		if _, err := pods.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil {
			return controller.IgnoreNotFound(err)
		}
	}
	err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("evict pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	deletions.WithLabelValues().Inc()
	latency.Observe(c.clock.Since(due).Seconds())
	return nil
}
