package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// closing is what is left to do for a pod that has ended.
type closing struct {
	busy     bool
	retry    time.Time
	tornDown bool // its volumes are gone
	deleted  bool // its API object is gone, or will be
	done     bool // all of it is gone from the node
}

// close takes an ended pod away, one step at a time: its volumes, then, if it was deleted, its API object, and when that is gone its
// sandbox, containers, files and logs. It returns when to try again.
func (w *Worker) close(ctx context.Context, pod *v1.Pod, gone bool, stage lifecycle.Stage) time.Time {
	c := &w.closing
	if stage != lifecycle.StageEnded || c.busy || c.done {
		return time.Time{}
	}
	if w.deps.Clock.Now().Before(c.retry) {
		return c.retry
	}
	switch {
	case !c.tornDown:
		w.closeStep(ctx, func() error { return w.deps.Volumes.TearDown(ctx, w.uid) }, func() { c.tornDown = true })
	case gone && !w.writer.busy:
		w.closeStep(ctx, func() error { return w.remove(ctx, pod) }, func() { c.done = true })
	case pod.DeletionTimestamp != nil && !c.deleted && w.writer.settled:
		w.closeStep(ctx, func() error { return w.deleteObject(ctx, pod) }, func() { c.deleted = true })
	}
	return time.Time{}
}

func (w *Worker) closeStep(ctx context.Context, perform func() error, done func()) {
	w.closing.busy = true
	w.ops.Go(func() {
		err := perform()
		w.report(func(context.Context) {
			w.closing.busy = false
			if err != nil {
				w.failures.Error(ctx, err, "Cannot take the ended pod away; trying again")
				w.closing.retry = w.deps.Clock.Now().Add(time.Second)
				return
			}
			done()
		})
	})
}

// deleteObject removes the API object of exactly this pod.
func (w *Worker) deleteObject(ctx context.Context, pod *v1.Pod) error {
	zero := int64(0)
	err := w.deps.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &w.uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// remove takes all that the node has of the pod away.
func (w *Worker) remove(ctx context.Context, pod *v1.Pod) error {
	if err := w.removeSandboxes(ctx); err != nil {
		return err
	}
	node := w.deps.Node()
	return errors.Join(os.RemoveAll(w.podDir(node)), os.RemoveAll(translate.LogDir(node.RootDir, pod)))
}

func (w *Worker) removeSandboxes(ctx context.Context) error {
	observed, err := w.observeForRemoval(ctx)
	if err != nil {
		return err
	}
	for _, s := range observed {
		if _, err := w.deps.Runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			return fmt.Errorf("stop sandbox %s: %w", s.Id, err)
		}
		if _, err := w.deps.Runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			return fmt.Errorf("remove sandbox %s: %w", s.Id, err)
		}
	}
	return w.removeCgroup(ctx)
}

func (w *Worker) observeForRemoval(ctx context.Context) ([]*cri.PodSandbox, error) {
	resp, err := w.deps.Runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{
		LabelSelector: map[string]string{translate.LabelPodUID: string(w.uid)},
	}})
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	return resp.Items, nil
}

// interruptedFile marks a pod that an orderly shutdown of the node stopped.
const interruptedFile = "interrupted"

func (w *Worker) wasInterrupted() bool {
	path := filepath.Join(w.podDir(w.deps.Node()), interruptedFile)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	return os.Remove(path) == nil
}

// Interrupt ends the pod's containers and sandbox for a shutdown of the node, after Run has returned. The API object is left alone, and a
// mark makes the next worker run the pod again, whatever its restart policy. Pods that have ended are left as they are, with their logs.
func (w *Worker) Interrupt(ctx context.Context) error {
	pod, gone := w.desired()
	w.quiet = true
	if gone {
		return w.interruptGone(ctx, pod)
	}
	observed, err := w.observe(ctx)
	if err != nil {
		return err
	}
	w.memory.Ending = &lifecycle.Ending{}
	if w.over(pod) || len(observed.Sandboxes) == 0 {
		return errors.Join(w.endAll(ctx, pod, observed), w.deps.Volumes.Unmount(w.uid))
	}
	node := w.deps.Node()
	if err := os.MkdirAll(w.podDir(node), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(w.podDir(node), interruptedFile), nil, 0o644); err != nil {
		return err
	}
	if err := w.endAll(ctx, pod, observed); err != nil {
		return err
	}
	if err := w.removeSandboxes(ctx); err != nil {
		return err
	}
	return w.deps.Volumes.Unmount(w.uid)
}

// over tells whether the pod has succeeded or failed, whether the API knows it yet or not.
func (w *Worker) over(pod *v1.Pod) bool {
	over := func(s *v1.PodStatus) bool { return s.Phase == v1.PodSucceeded || s.Phase == v1.PodFailed }
	return over(&pod.Status) || w.computed != nil && over(w.computed)
}

// interruptGone takes away what is left of a pod that is no longer in the API.
func (w *Worker) interruptGone(ctx context.Context, pod *v1.Pod) error {
	observed, err := w.observe(ctx)
	if err != nil {
		return err
	}
	w.memory.Ending = &lifecycle.Ending{}
	if err := w.endAll(ctx, pod, observed); err != nil {
		return err
	}
	if err := w.deps.Volumes.TearDown(ctx, w.uid); err != nil {
		return err
	}
	return w.remove(ctx, pod)
}

// endAll stops the pod's containers in the order in which a deletion would.
func (w *Worker) endAll(ctx context.Context, pod *v1.Pod, observed lifecycle.Observed) error {
	for {
		plan := lifecycle.Decide(lifecycle.Input{Pod: pod, Now: w.deps.Clock.Now(), Observed: observed, Memory: &w.memory})
		if len(plan.Actions) == 0 {
			return nil
		}
		errs := make(chan error, len(plan.Actions))
		for _, a := range plan.Actions {
			go func() { errs <- w.stopOrRemove(ctx, pod, a) }()
		}
		var failed error
		for range plan.Actions {
			failed = errors.Join(failed, <-errs)
		}
		if failed != nil {
			return failed
		}
		var err error
		if observed, err = w.observe(ctx); err != nil {
			return err
		}
	}
}
