package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// burst is the largest number of pods that one sync makes or removes.
const burst = 500

// manage makes or removes pods until as many are active as the Job wants at this time.
func (a *attempt) manage(ctx context.Context) error {
	if isSuspended(a.job) {
		return a.removeActive(ctx, a.active)
	}
	want := a.wantActive()
	if surplus := len(a.active) - int(ptr.Deref(a.job.Spec.Parallelism, 1)); surplus > 0 {
		return a.removeActive(ctx, a.leastUseful(min(surplus, burst)))
	}
	missing := want - len(a.active)
	if replacesOnlyFailed(a.job) {
		missing -= a.terminating
	}
	if missing <= 0 {
		return nil
	}
	if isIndexed(a.job) {
		return a.createIndexed(ctx, min(missing, burst))
	}
	if wait := a.c.backoffLeft(a.key, a.now); wait > 0 {
		a.c.AddAfter(a.key, wait)
		return nil
	}
	_, err := controller.SlowStart(min(missing, burst), func() error { return a.create(ctx, a.podTemplate(-1)) })
	return err
}

// wantActive is how many pods should be active: parallelism, but no more than there are successes missing.
func (a *attempt) wantActive() int {
	parallelism := int(ptr.Deref(a.job.Spec.Parallelism, 1))
	if a.job.Spec.Completions == nil {
		if a.succeeded() > 0 {
			return len(a.active)
		}
		return parallelism
	}
	return max(0, min(parallelism, completionsOf(a.job)-a.succeeded()-a.failedIndexes.count()))
}

// leastUseful picks pods to remove, by the rules of ReplicaSets.
func (a *attempt) leastUseful(count int) []*corev1.Pod {
	return controller.RankForDeletion(a.active, controller.Neighbourhood{Related: a.active}, a.now)[:count]
}

// removeActive deletes pods and takes them from the picture.
func (a *attempt) removeActive(ctx context.Context, pods []*corev1.Pod) error {
	pods = slices.Clone(pods)
	var mu sync.Mutex
	var errs []error
	var calls sync.WaitGroup
	for _, pod := range pods {
		calls.Go(func() {
			a.c.expectations.Deleting(a.key, pod.UID)
			err := a.c.control.Delete(ctx, a.cached, pod)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				a.c.expectations.DeleteFailed(a.key, pod.UID)
				errs = append(errs, controller.IgnoreNotFound(err))
				return
			}
			a.active = slices.DeleteFunc(a.active, func(p *corev1.Pod) bool { return p == pod })
			a.terminating++
			if controller.IsPodReady(pod) {
				a.ready--
			}
		})
	}
	calls.Wait()
	return errors.Join(errs...)
}

func (a *attempt) create(ctx context.Context, template *corev1.PodTemplateSpec) error {
	pod := controller.PodFromTemplate(template, a.cached, gvk)
	if index, found := template.Annotations[batchv1.JobCompletionIndexAnnotation]; found {
		pod.GenerateName = fmt.Sprintf("%s-%s-", a.job.Name, index)
	}
	a.c.expectations.Creating(a.key)
	made, err := a.c.control.Create(ctx, a.cached, pod)
	if err != nil {
		a.c.expectations.CreateFailed(a.key)
		return err
	}
	a.c.expectations.Created(a.key, made.UID)
	return nil
}

// createIndexed makes pods for the first indexes that have none, have not succeeded and have not failed for good.
func (a *attempt) createIndexed(ctx context.Context, count int) error {
	taken := map[int]bool{}
	failures := map[int]*corev1.Pod{} // the last failed pod of each index
	for _, pod := range a.pods {
		i := indexOf(pod, completionsOf(a.job))
		switch {
		case controller.IsPodActive(pod) || (replacesOnlyFailed(a.job) && controller.IsPodTerminating(pod)):
			taken[i] = true
		case a.failed(pod):
			if last := failures[i]; last == nil || failureCount(last) < failureCount(pod) {
				failures[i] = pod
			}
		}
	}
	var templates []*corev1.PodTemplateSpec
	wait := time.Duration(0)
	overall := a.c.backoffLeft(a.key, a.now)
	for i := 0; i < completionsOf(a.job) && len(templates) < count; i++ {
		if taken[i] || a.completed.has(i) || a.failedIndexes.has(i) {
			continue
		}
		template, left := a.podTemplate(i), overall
		if a.perIndexLimit() != nil {
			left = a.countFailures(template, failures[i])
		}
		if left > 0 {
			if wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		templates = append(templates, template)
	}
	if wait > 0 {
		a.c.AddAfter(a.key, wait)
	}
	next := make(chan *corev1.PodTemplateSpec, len(templates))
	for _, template := range templates {
		next <- template
	}
	_, err := controller.SlowStart(len(templates), func() error { return a.create(ctx, <-next) })
	return err
}

// countFailures notes on the new pod of an index how often the index failed, and tells how long it must wait.
func (a *attempt) countFailures(template *corev1.PodTemplateSpec, last *corev1.Pod) time.Duration {
	if last == nil {
		template.Annotations[batchv1.JobIndexFailureCountAnnotation] = "0"
		return 0
	}
	failures, ignored := failureCount(last), 0
	ignored, _ = strconv.Atoi(last.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation])
	if action, _ := a.match(last); action == batchv1.PodFailurePolicyActionIgnore {
		ignored++
	} else {
		failures++
	}
	template.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(failures)
	if ignored > 0 {
		template.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
	}
	return finishTime(last, a.now).Add(backoffDelay(failures + ignored)).Sub(a.now)
}

// podTemplate is the Job's template with what the controller adds; index is -1 for Jobs without indexes.
func (a *attempt) podTemplate(index int) *corev1.PodTemplateSpec {
	t := a.job.Spec.Template.DeepCopy()
	t.Finalizers = append(t.Finalizers, batchv1.JobTrackingFinalizer)
	t.Annotations, t.Labels = maps.Clone(t.Annotations), maps.Clone(t.Labels)
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if index < 0 {
		return t
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	text := strconv.Itoa(index)
	t.Annotations[batchv1.JobCompletionIndexAnnotation] = text
	t.Labels[batchv1.JobCompletionIndexAnnotation] = text
	if t.Spec.Hostname == "" {
		t.Spec.Hostname = fmt.Sprintf("%s-%d", a.job.Name, index)
	}
	env := corev1.EnvVar{Name: "JOB_COMPLETION_INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + batchv1.JobCompletionIndexAnnotation + "']"}}}
	for _, containers := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range containers {
			if !slices.ContainsFunc(containers[i].Env, func(e corev1.EnvVar) bool { return e.Name == env.Name }) {
				containers[i].Env = append(containers[i].Env, env)
			}
		}
	}
	return t
}
