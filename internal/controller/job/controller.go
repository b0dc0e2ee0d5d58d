// Package job runs pods until enough of them have succeeded.
//
// Every pod of a Job carries the finalizer batch.kubernetes.io/job-tracking, so that none can disappear before it was counted. Counting a
// finished pod takes three steps, each of which can be repeated: its UID is written into status.uncountedTerminatedPods; the finalizer is
// removed; and, when the cache shows that, the UID is replaced by one more in status.succeeded or status.failed (indexed Jobs
// write the index into status.completedIndexes instead). A sync reads the Job and its pods, decides whether the Job is over (finish.go), makes or
// removes pods (manage.go), and does the accounting with one write of the status (track.go). See README.md for the rules.
package job

import (
	"context"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs, metrics and events.
const Name = "job-controller"

var gvk = batchv1.SchemeGroupVersion.WithKind("Job")

// managedBy is the value of spec.managedBy that means this controller.
const managedBy = "kubernetes.io/job-controller"

// strayKey is the prefix of keys of pods whose Job is gone: only their finalizer is left to do.
const strayKey = "stray:"

// Controller runs Jobs.
type Controller struct {
	*controller.Loop
	client       kubernetes.Interface
	recorder     record.EventRecorder
	control      controller.PodControl
	expectations *controller.Expectations
	fresh        *controller.Freshness
	clock        clock.PassiveClock
	jobs         batchlisters.JobLister
	pods         corelisters.PodLister
	podIndex     cache.Indexer

	mu       sync.Mutex
	backoffs map[string]*backoff
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	pods, jobs := deps.Informers.Core().V1().Pods(), deps.Informers.Batch().V1().Jobs()
	if err := controller.IndexByOwner(pods.Informer()); err != nil {
		return nil, err
	}
	recorder := deps.Recorder(Name)
	c := &Controller{
		client: deps.Client, recorder: recorder, control: controller.PodControl{Client: deps.Client, Recorder: recorder},
		expectations: controller.NewExpectations(deps.Clock), fresh: controller.NewFreshness(), clock: deps.Clock,
		jobs: jobs.Lister(), pods: pods.Lister(), podIndex: pods.Informer().GetIndexer(), backoffs: map[string]*backoff{},
	}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	if err := c.Handle(jobs.Informer(), controller.Handlers[*batchv1.Job]{
		Add: func(job *batchv1.Job) { c.AddObject(job) }, Update: func(_, job *batchv1.Job) { c.AddObject(job) }, Delete: c.jobDeleted,
	}); err != nil {
		return nil, err
	}
	return c, c.Handle(pods.Informer(), controller.Handlers[*corev1.Pod]{Add: c.podAdded, Update: c.podUpdated, Delete: func(pod *corev1.Pod) {
		c.fresh.Forget(pod.UID)
		c.podGone(pod)
	}})
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// jobDeleted frees the pods of the Job: they were never more than its own, and are collected as soon as nothing holds them.
func (c *Controller) jobDeleted(job *batchv1.Job) {
	c.expectations.Forget(keyOf(job))
	c.fresh.Forget(job.UID)
	c.AddObject(job)
	for _, pod := range controller.Owned[*corev1.Pod](c.podIndex, job.UID) {
		c.addStray(pod)
	}
}

func (c *Controller) addStray(pod *corev1.Pod) {
	if hasFinalizer(pod) {
		c.Add(strayKey + keyOf(pod))
	}
}

// jobOf is the cached Job that the pod belongs to; owned tells whether it names a Job at all.
func (c *Controller) jobOf(pod *corev1.Pod) (job *batchv1.Job, owned bool) {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != gvk.Kind || ref.APIVersion != gvk.GroupVersion().String() {
		return nil, false
	}
	job, err := c.jobs.Jobs(pod.Namespace).Get(ref.Name)
	if err != nil || job.UID != ref.UID {
		return nil, true
	}
	return job, true
}

func (c *Controller) podAdded(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil {
		c.podGone(pod)
		return
	}
	job, owned := c.jobOf(pod)
	switch {
	case job != nil:
		c.expectations.ObservedAdd(keyOf(job), pod.UID)
		c.AddObject(job)
	case owned || hasFinalizer(pod):
		c.addStray(pod)
		c.offer(pod)
	default:
		c.offer(pod)
	}
}

func (c *Controller) podUpdated(old, pod *corev1.Pod) {
	if old.ResourceVersion == pod.ResourceVersion {
		return
	}
	if before, _ := c.jobOf(old); before != nil && !equality.Semantic.DeepEqual(old.OwnerReferences, pod.OwnerReferences) {
		c.expectations.ObservedGone(keyOf(before), old.UID)
		c.AddObject(before)
	}
	c.podAdded(pod)
}

func (c *Controller) podGone(pod *corev1.Pod) {
	job, owned := c.jobOf(pod)
	if job == nil {
		if owned || hasFinalizer(pod) {
			c.addStray(pod)
		}
		return
	}
	c.expectations.ObservedGone(keyOf(job), pod.UID)
	c.AddObject(job)
}

// offer shows a pod without a controller to the Jobs that may adopt it.
func (c *Controller) offer(pod *corev1.Pod) {
	if metav1.GetControllerOfNoCopy(pod) != nil || len(pod.Labels) == 0 {
		return
	}
	jobs, err := c.jobs.Jobs(pod.Namespace).List(labels.Everything())
	if err != nil {
		return
	}
	for _, job := range jobs {
		selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(pod.Labels)) {
			c.AddObject(job)
		}
	}
}

// syncStray takes the finalizer from a pod that no running Job counts.
func (c *Controller) syncStray(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(strings.TrimPrefix(key, strayKey))
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == gvk.Kind {
		// Make sure that the Job is gone and not only late in the cache.
		job, err := c.client.BatchV1().Jobs(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		if controller.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && job.UID == ref.UID && !isOver(job) {
			return nil
		}
	}
	return c.removeFinalizer(ctx, pod)
}
