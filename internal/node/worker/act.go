package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// launch starts an action in a goroutine of its own; what comes of it is applied in the loop.
func (w *Worker) launch(ctx context.Context, pod *v1.Pod, a lifecycle.Action) {
	ctx, cancel := context.WithCancel(ctx)
	o := &op{cancel: cancel, container: a.Container, grace: a.Grace}
	var perform func() error
	var apply func(err error)
	switch a.Kind {
	case lifecycle.CreateSandbox:
		w.sandbox = o
		perform = func() error { return w.createSandbox(ctx, pod, a) }
		apply = func(err error) { w.sandbox = nil; w.sandboxDone(ctx, err) }
	case lifecycle.StartContainer:
		w.starting = o
		in := w.startInput(pod, a)
		perform = func() error { return w.startContainer(ctx, pod, in) }
		apply = func(err error) { w.starting = nil; w.startDone(a, err) }
	case lifecycle.UpdateContainer:
		w.updates[a.ID] = true
		granted := w.memory.Allocated[a.Container]
		perform = func() error { return w.updateContainer(ctx, pod, a, granted) }
		apply = func(err error) { delete(w.updates, a.ID); w.updateDone(pod, a, err) }
	default:
		if old := w.busy[a.ID]; old != nil {
			old.cancel() // the new stop has less grace
		}
		w.busy[a.ID] = o
		perform = func() error { return w.stopOrRemove(ctx, pod, a) }
		apply = func(err error) {
			if w.busy[a.ID] == o {
				delete(w.busy, a.ID)
			}
			w.stopDone(ctx, a, err)
		}
	}
	w.ops.Go(func() {
		defer cancel()
		err := perform()
		w.report(func(context.Context) {
			apply(err)
			w.dirty.Store(true)
		})
	})
}

// report hands a result to the loop, unless the loop has ended.
func (w *Worker) report(apply func(context.Context)) {
	select {
	case w.results <- apply:
	case <-w.stopped:
	}
}

// createSandbox makes directories, volumes and the sandbox.
func (w *Worker) createSandbox(ctx context.Context, pod *v1.Pod, a lifecycle.Action) error {
	if a.ID != "" {
		if _, err := w.deps.Runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: a.ID}); err != nil {
			return fmt.Errorf("stop the former sandbox %s: %w", a.ID, err)
		}
	}
	for _, dir := range []string{w.podDir(w.deps.Node()), translate.LogDir(w.deps.Node().RootDir, pod)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("directory of the pod: %w", err)
		}
	}
	node, err := w.node(pod)
	if err != nil {
		w.event(pod, "", v1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", err))
		return err
	}
	if err := w.deps.Volumes.SetUp(ctx, pod); err != nil {
		w.event(pod, "", v1.EventTypeWarning, "FailedMount", err.Error())
		return err
	}
	if err := w.ensureCgroup(ctx, pod); err != nil {
		return err
	}
	_, err = w.deps.Runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: translate.Sandbox(node, pod, uint32(a.Attempt))})
	if err != nil {
		w.event(pod, "", v1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", err))
		return fmt.Errorf("run sandbox: %w", err)
	}
	return nil
}

// node is the node as the pod's translation needs it: with the pod's own users if it has such. The pod's directory must be there.
func (w *Worker) node(pod *v1.Pod) (*translate.Node, error) {
	if !translate.OwnUsers(pod) {
		return w.deps.Node(), nil
	}
	first, err := w.deps.Users.Take(w.uid)
	if err != nil {
		return nil, err
	}
	node := *w.deps.Node()
	node.FirstUser = first
	return &node, nil
}

func (w *Worker) sandboxDone(ctx context.Context, err error) {
	const failed = "Cannot make the pod's sandbox; trying again"
	if err == nil {
		w.memory.Sandbox = lifecycle.Retry{}
		w.failures.Over(failed)
		return
	}
	if ctx.Err() == nil {
		w.failures.Error(ctx, err, failed)
	}
	w.memory.Sandbox.Fail(w.deps.Clock.Now(), "FailedCreatePodSandBox", err.Error())
}

func (w *Worker) startDone(a lifecycle.Action, err error) {
	m, now := w.memory.Of(a.Container), w.deps.Clock.Now()
	var f *failure
	switch {
	case err == nil:
		m.Started()
	case errors.Is(err, context.Canceled):
	case errors.As(err, &f):
		m.FailStart(now, f.reason, f.message)
	default:
		m.FailStart(now, lifecycle.ReasonCreate, err.Error())
	}
}

func (w *Worker) stopOrRemove(ctx context.Context, pod *v1.Pod, a lifecycle.Action) error {
	var err error
	switch a.Kind {
	case lifecycle.StopContainer:
		err = w.stopContainer(ctx, pod, a)
	case lifecycle.RemoveContainer:
		_, err = w.deps.Runtime.RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: a.ID})
	case lifecycle.StopSandbox:
		_, err = w.deps.Runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: a.ID})
	case lifecycle.RemoveSandbox:
		_, err = w.deps.Runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: a.ID})
	}
	if err != nil && ctx.Err() == nil {
		w.pause(ctx)
	}
	return err
}

// pause keeps a failed operation in flight for a moment, so that it isn't tried again at once.
func (w *Worker) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-w.deps.Clock.After(time.Second):
	}
}

func (w *Worker) stopDone(ctx context.Context, a lifecycle.Action, err error) {
	if err != nil && ctx.Err() == nil {
		w.failures.Error(ctx, err, "Cannot carry out; trying again", "action", a.String(), "id", a.ID)
	}
}

// minAfterHook is the least grace that is left after a preStop hook has used it up.
const minAfterHook = 2 * time.Second

// stopContainer runs the preStop hook, then asks the runtime to stop the container within what is left of the grace.
func (w *Worker) stopContainer(ctx context.Context, pod *v1.Pod, a lifecycle.Action) error {
	w.event(pod, a.Container, v1.EventTypeNormal, "Killing", a.Message)
	grace := a.Grace
	if spec := containerSpec(pod, a.Container); spec != nil && spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 {
		begin := w.deps.Clock.Now()
		if err := w.hook(ctx, pod, spec, a.ID, spec.Lifecycle.PreStop, grace); err != nil && ctx.Err() == nil {
			w.event(pod, a.Container, v1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
			klog.FromContext(ctx).Info("The preStop hook failed", "container", a.Container, "err", err)
		}
		grace = max(min(grace, minAfterHook), grace-w.deps.Clock.Since(begin))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	seconds := int64(math.Ceil(grace.Seconds()))
	_, err := w.deps.Runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: a.ID, Timeout: seconds})
	return err
}

// event records an event. After Run there is nobody left to send it.
func (w *Worker) event(pod *v1.Pod, container, eventType, reason, message string) {
	if w.quiet {
		return
	}
	w.deps.Recorder.Event(reference(pod, container), eventType, reason, message)
}

// reference is the object of an event: the pod, or the place of one container in its spec.
func reference(pod *v1.Pod, container string) *v1.ObjectReference {
	ref := &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
	if container == "" {
		return ref
	}
	list := "ephemeralContainers"
	for name, containers := range map[string][]v1.Container{"initContainers": pod.Spec.InitContainers, "containers": pod.Spec.Containers} {
		for i := range containers {
			if containers[i].Name == container {
				list = name
			}
		}
	}
	ref.FieldPath = fmt.Sprintf("spec.%s{%s}", list, container)
	return ref
}
