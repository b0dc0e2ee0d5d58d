package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/node/static"
	"github.com/bayplan/bayplan/internal/node/translate"
	"github.com/bayplan/bayplan/internal/node/worker"
)

// pods holds the workers of a node, one a pod, and brings them what concerns them.
type pods struct {
	deps *worker.Deps
	node *Node

	mu      sync.Mutex
	workers map[types.UID]*worker.Worker
	// known are the pods that were in the runtime when the agent started: they were admitted before.
	known map[types.UID]*v1.Pod
	// synced is true when all pods of the node are known.
	synced  bool
	running sync.WaitGroup
	cpu     burstableCPU
	static  staticPods
}

func newPods(deps *worker.Deps, n *Node) *pods {
	return &pods{deps: deps, node: n, workers: map[types.UID]*worker.Worker{}, static: newStaticPods()}
}

// run follows the pods that are bound to the node until ctx ends, and waits until all workers have stopped.
func (p *pods) run(ctx context.Context, known map[types.UID]*v1.Pod) {
	defer p.running.Wait()
	p.mu.Lock()
	p.known = known
	p.mu.Unlock()
	p.readStatic(ctx) // they need no API server
	name := p.node.cfg.Name
	informer := coreinformers.NewFilteredPodInformer(p.node.cfg.Client, metav1.NamespaceAll, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", name).String()
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { p.update(ctx, o) },
		UpdateFunc: func(_, o any) { p.update(ctx, o) },
		DeleteFunc: func(o any) { p.gone(o) },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot follow pods")
		return
	}
	p.running.Go(func() { informer.RunWithContext(ctx) })
	p.running.Go(func() { p.followStatic(ctx) })
	select {
	case <-ctx.Done():
		return
	case <-registration.HasSyncedChecker().Done():
		p.adoptOrphans(ctx)
	}
	<-ctx.Done()
}

// update brings a pod to its worker, which is made for a new pod.
func (p *pods) update(ctx context.Context, o any) {
	pod, ok := o.(*v1.Pod)
	if !ok || pod.Spec.NodeName != p.node.cfg.Name {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if static.IsMirror(pod) {
		p.mirrored(pod)
		return
	}
	p.countCPU(ctx, pod)
	if w := p.workers[pod.UID]; w != nil {
		w.Update(pod)
		return
	}
	p.begin(ctx, worker.New(p.deps, pod), pod)
}

// begin lets a new pod in or refuses it, and starts its worker. p.mu is held.
func (p *pods) begin(ctx context.Context, w *worker.Worker, pod *v1.Pod) {
	if refused := p.admit(ctx, pod); refused != nil {
		w.End(*refused)
		p.deps.Recorder.Event(pod, v1.EventTypeWarning, refused.Reason, refused.Message)
	}
	p.start(ctx, w, pod.UID)
}

func (p *pods) start(ctx context.Context, w *worker.Worker, uid types.UID) {
	p.workers[uid] = w
	p.running.Go(func() {
		if w.Run(ctx) {
			p.mu.Lock()
			delete(p.workers, uid)
			p.shareCPU(ctx, uid, 0)
			p.mu.Unlock()
			p.static.wake() // one of the same name may wait
		}
	})
}

func (p *pods) gone(o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	pod, ok := o.(*v1.Pod)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if static.IsMirror(pod) {
		p.mirrorGone(pod)
		return
	}
	if w := p.workers[pod.UID]; w != nil {
		w.Gone()
	}
}

// poke tells the worker of a pod, if there is one, that the runtime has news of it.
func (p *pods) poke(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.workers[uid]; w != nil {
		w.Poke()
	}
}

// adoptOrphans ends the pods that are in the runtime but no longer in the API, and removes files of pods that are in neither.
func (p *pods) adoptOrphans(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for uid, pod := range p.known {
		if p.workers[uid] == nil {
			klog.FromContext(ctx).Info("Ending a pod that is no longer in the API", "pod", klog.KObj(pod), "podUID", uid)
			w := worker.New(p.deps, pod)
			w.Gone()
			p.start(ctx, w, uid)
		}
	}
	p.synced = true
	p.static.wake()
	for _, w := range p.workers {
		w.Poke()
	}
	if err := p.removeLeftovers(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the files of former pods")
	}
}

// removeLeftovers removes directories of pods that have no worker.
func (p *pods) removeLeftovers(ctx context.Context) error {
	root := filepath.Join(p.node.cfg.RootDir, "pods")
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		uid := types.UID(e.Name())
		if p.workers[uid] != nil {
			continue
		}
		if err := p.deps.Volumes.TearDown(ctx, uid); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		logs, err := filepath.Glob(filepath.Join(p.node.cfg.RootDir, "logs", "*_"+e.Name()))
		failed = errors.Join(failed, err, os.RemoveAll(filepath.Join(root, e.Name())))
		for _, dir := range logs {
			failed = errors.Join(failed, os.RemoveAll(dir))
		}
	}
	return failed
}

// list returns the pods of the node, sorted by namespace and name.
func (p *pods) list() []*v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*v1.Pod, 0, len(p.workers))
	for _, w := range p.workers {
		out = append(out, w.Pod())
	}
	slices.SortFunc(out, func(a, b *v1.Pod) int {
		return cmpStrings(a.Namespace, b.Namespace, a.Name, b.Name, string(a.UID), string(b.UID))
	})
	return out
}

func cmpStrings(pairs ...string) int {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] < pairs[i+1] {
			return -1
		}
		if pairs[i] > pairs[i+1] {
			return 1
		}
	}
	return 0
}

// critical is the lowest priority of pods that a shutdown ends last.
const critical = 2000000000

// interrupt ends all pods for a shutdown.
func (p *pods) interrupt(ctx context.Context) error {
	p.mu.Lock()
	var ordinary, last []*worker.Worker
	for _, w := range p.workers {
		if prio := w.Pod().Spec.Priority; prio != nil && *prio >= critical {
			last = append(last, w)
		} else {
			ordinary = append(ordinary, w)
		}
	}
	p.mu.Unlock()
	return errors.Join(interruptAll(ctx, ordinary), interruptAll(ctx, last))
}

func interruptAll(ctx context.Context, workers []*worker.Worker) error {
	errs := make([]error, len(workers))
	var wait sync.WaitGroup
	for i, w := range workers {
		wait.Go(func() {
			if err := w.Interrupt(ctx); err != nil {
				errs[i] = fmt.Errorf("pod %s: %w", klog.KObj(w.Pod()), err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// orphan is what is left to know of a pod that is only in the runtime.
func orphan(uid types.UID, namespace, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: namespace, Name: name}}
}

// addOrphanContainer notes a container and the pod's grace, which its annotations tell.
func addOrphanContainer(pod *v1.Pod, meta translate.Meta) {
	pod.Spec.TerminationGracePeriodSeconds = &meta.Grace
	if !slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == meta.Container }) {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: meta.Container})
	}
}
