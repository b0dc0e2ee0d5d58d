package node

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bayplan/bayplan/internal/node/static"
	"github.com/bayplan/bayplan/internal/node/worker"
)

// staticPeriod is how often the manifests are looked at.
const staticPeriod = 5 * time.Second

// staticPods are the pods that the node runs by itself. All but changed is guarded by pods.mu.
type staticPods struct {
	pods map[types.UID]*v1.Pod
	// mirrors are the objects by which the API shows such pods, by namespace and name, also of pods that there are no more.
	mirrors map[types.NamespacedName]*v1.Pod
	changed chan struct{}
}

func newStaticPods() staticPods {
	return staticPods{pods: map[types.UID]*v1.Pod{}, mirrors: map[types.NamespacedName]*v1.Pod{}, changed: make(chan struct{}, 1)}
}

// wake asks for a look at manifests and mirrors.
func (s *staticPods) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// followStatic keeps static pods as their manifests are, and their mirrors as the pods are, until ctx ends.
func (p *pods) followStatic(ctx context.Context) {
	ticker := p.node.cfg.Clock.NewTicker(staticPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		case <-p.static.changed:
		}
		p.readStatic(ctx)
		p.mirrorStatic(ctx)
	}
}

// readStatic ends pods whose manifests are gone or are others now, and begins the pods that there are now. One that has the name of one that is
// still ending waits for its end.
func (p *pods) readStatic(ctx context.Context) {
	if p.node.cfg.StaticPods == "" {
		return
	}
	const failed = "Cannot read all static pods"
	list, err := static.Read(p.node.cfg.StaticPods, p.node.cfg.Name)
	if err != nil {
		p.node.failures.Error(ctx, err, failed)
	} else {
		p.node.failures.Over(failed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endStatic(list)
	taken := map[types.NamespacedName]bool{}
	for uid := range p.static.pods {
		taken[nameOf(p.static.pods[uid])] = true
	}
	for _, pod := range list {
		if taken[nameOf(pod)] {
			continue
		}
		p.static.pods[pod.UID] = pod
		p.countCPU(ctx, pod)
		w := worker.NewStatic(p.deps, pod)
		w.Mirror(p.mirrorOf(pod))
		p.begin(ctx, w, pod)
	}
}

// endStatic ends the pods that are not in the list, and forgets those that have ended. p.mu is held.
func (p *pods) endStatic(list []*v1.Pod) {
	wanted := map[types.UID]bool{}
	for _, pod := range list {
		wanted[pod.UID] = true
	}
	for uid := range p.static.pods {
		switch w := p.workers[uid]; {
		case w == nil:
			delete(p.static.pods, uid)
		case !wanted[uid]:
			w.Gone()
		}
	}
}

// mirrorOf is the object that shows exactly this pod. p.mu is held.
func (p *pods) mirrorOf(pod *v1.Pod) *v1.Pod {
	m := p.static.mirrors[nameOf(pod)]
	if m == nil || m.DeletionTimestamp != nil || !static.Mirrors(m, pod) {
		return nil
	}
	return m
}

// mirrored notes an object that shows a static pod. p.mu is held.
func (p *pods) mirrored(object *v1.Pod) {
	p.static.mirrors[nameOf(object)] = object
	p.tellMirror(nameOf(object))
}

// mirrorGone notes that there is no such object any more. p.mu is held.
func (p *pods) mirrorGone(object *v1.Pod) {
	if m := p.static.mirrors[nameOf(object)]; m != nil && m.UID == object.UID {
		delete(p.static.mirrors, nameOf(object))
	}
	p.tellMirror(nameOf(object))
}

func (p *pods) tellMirror(name types.NamespacedName) {
	for uid, pod := range p.static.pods {
		if w := p.workers[uid]; w != nil && nameOf(pod) == name {
			w.Mirror(p.mirrorOf(pod))
		}
	}
	p.static.wake()
}

// mirrorStatic makes the mirrors that are missing, and deletes those that show nothing, or what was. Who deletes a mirror has not deleted the pod.
func (p *pods) mirrorStatic(ctx context.Context) {
	missing, stale := p.mirrorWork()
	api := p.node.cfg.Client.CoreV1()
	zero := int64(0)
	for _, m := range stale {
		err := api.Pods(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &m.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			p.node.failures.Error(ctx, err, "Cannot delete the object of a static pod", "pod", nameOf(m))
		}
	}
	for _, m := range missing {
		_, err := api.Pods(m.Namespace).Create(ctx, m, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) && ctx.Err() == nil {
			p.node.failures.Error(ctx, err, "Cannot create the object of a static pod", "pod", nameOf(m))
		}
	}
}

// mirrorWork is what is to be created and deleted. Nothing is as long as it is not known what there is, or the Node to which mirrors belong.
func (p *pods) mirrorWork() (missing, stale []*v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	node := p.node.current.Load()
	if node == nil || !p.synced {
		return nil, nil
	}
	shown := map[types.NamespacedName]bool{}
	for _, pod := range p.static.pods {
		name := nameOf(pod)
		shown[name] = shown[name] || p.mirrorOf(pod) != nil
		if p.static.mirrors[name] == nil {
			missing = append(missing, static.Mirror(pod, node))
		}
	}
	for name, m := range p.static.mirrors {
		if !shown[name] {
			stale = append(stale, m)
		}
	}
	return missing, stale
}
