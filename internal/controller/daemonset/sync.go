package daemonset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/bayplan/bayplan/internal/controller"
)

// burst is the largest number of pods that one sync makes or removes.
const burst = 250

// plan is one sync of one DaemonSet.
type plan struct {
	c      *Controller
	key    string
	cached *appsv1.DaemonSet
	ds     *appsv1.DaemonSet // a copy whose status is changed and then written
	hash   string            // of the current revision
	nodes  []*corev1.Node
	where  map[string]placement
	pods   map[string][]*corev1.Pod // by node, in the order in which they count
	create []string                 // nodes
	remove []*corev1.Pod
}

func (c *Controller) sync(ctx context.Context, key string) error {
	namespace, name, _ := cache.SplitMetaNamespaceKey(key)
	ds, err := c.sets.DaemonSets(namespace).Get(name)
	if err != nil {
		c.expectations.Forget(key)
		c.forgetFailures(key)
		return controller.IgnoreNotFound(err)
	}
	selector, err := metav1.LabelSelectorAsSelector(ds.Spec.Selector)
	if err != nil {
		return fmt.Errorf("daemonSet %s: spec.selector: %w", key, err)
	}
	if selector.Empty() {
		c.recorder.Event(ds, corev1.EventTypeWarning, "SelectingAll", "This daemon set is selecting all pods. A non-empty selector is required.")
		return nil
	}
	if ds.DeletionTimestamp != nil {
		return nil
	}
	p := &plan{c: c, key: key, cached: ds, ds: ds.DeepCopy()}
	revisions, err := p.revision(ctx, selector)
	if err != nil {
		return errors.Join(err, p.writeCollisions(ctx))
	}
	settled, left := c.expectations.Satisfied(key) // before the pods are read: what settles in between would not be seen
	if err := p.read(ctx, selector); err != nil {
		return err
	}
	var failure error
	if settled {
		p.manage()
		p.roll()
		failure = p.act(ctx)
	} else {
		c.AddAfter(key, left)
	}
	if err := p.writeStatus(ctx); err != nil {
		return errors.Join(failure, err)
	}
	if failure != nil {
		if controller.IsNamespaceTerminating(failure) {
			return nil
		}
		return failure
	}
	return p.trim(ctx, revisions)
}

// revision finds or makes the ControllerRevision of the template.
func (p *plan) revision(ctx context.Context, selector labels.Selector) ([]*appsv1.ControllerRevision, error) {
	revisions, err := p.c.revisions.List(ctx, p.cached, selector, p.fresh)
	if err != nil {
		return nil, err
	}
	current, err := p.c.revisions.Current(ctx, p.cached, &p.ds.Spec.Template, revisions, &p.ds.Status.CollisionCount,
		func(_ []byte, collisions *int32) (string, map[string]string) {
			hash := controller.TemplateHash(&p.ds.Spec.Template, collisions)
			labels := maps.Clone(p.ds.Spec.Template.Labels)
			labels[appsv1.DefaultDaemonSetUniqueLabelKey] = hash
			return hash, labels
		})
	if err != nil {
		return nil, err
	}
	p.hash = current.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	return revisions, nil
}

func (p *plan) fresh(ctx context.Context) (metav1.Object, error) {
	return p.c.client.AppsV1().DaemonSets(p.cached.Namespace).Get(ctx, p.cached.Name, metav1.GetOptions{})
}

// read fills in nodes and pods.
func (p *plan) read(ctx context.Context, selector labels.Selector) error {
	claimer := controller.Claimer[*corev1.Pod]{Owner: p.cached, Kind: gvk, Selector: selector, Fresh: p.fresh, Patch: p.c.control.Patch}
	candidates := append(controller.Owned[*corev1.Pod](p.c.podIndex, p.cached.UID), controller.Orphans[*corev1.Pod](p.c.podIndex, p.cached.Namespace)...)
	pods, err := claimer.Claim(ctx, candidates)
	if err != nil {
		return fmt.Errorf("claim the pods of DaemonSet %s: %w", p.key, err)
	}
	p.pods = map[string][]*corev1.Pod{}
	for _, pod := range pods {
		if node := nodeOf(pod); node != "" {
			p.pods[node] = append(p.pods[node], pod)
		}
	}
	for _, pods := range p.pods {
		slices.SortFunc(pods, whoCounts)
	}
	p.nodes, err = p.c.nodes.List(labels.Everything())
	slices.SortFunc(p.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	p.where = make(map[string]placement, len(p.nodes))
	for _, node := range p.nodes {
		p.where[node.Name] = place(p.cached, node)
	}
	return err
}

// whoCounts puts pods that are assigned first, then the older ones.
func whoCounts(a, b *corev1.Pod) int {
	assigned := func(pod *corev1.Pod) int {
		if pod.Spec.NodeName != "" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(assigned(a), assigned(b)), a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// act makes and removes what the plan says.
func (p *plan) act(ctx context.Context) error {
	creates := p.create[:min(len(p.create), burst)]
	removes := p.remove[:min(len(p.remove), burst)]
	for _, pod := range removes {
		p.c.expectations.Deleting(p.key, pod.UID)
	}
	errs := make([]error, len(removes))
	var calls sync.WaitGroup
	for i, pod := range removes {
		calls.Go(func() {
			if err := p.c.control.Delete(ctx, p.cached, pod); err != nil {
				p.c.expectations.DeleteFailed(p.key, pod.UID)
				errs[i] = controller.IgnoreNotFound(err)
			}
		})
	}
	next := make(chan string, len(creates))
	for _, node := range creates {
		next <- node
	}
	_, err := controller.SlowStart(len(creates), func() error {
		p.c.expectations.Creating(p.key)
		pod, err := p.c.control.Create(ctx, p.cached, podFor(p.cached, <-next, p.hash))
		if err != nil {
			p.c.expectations.CreateFailed(p.key)
			return err
		}
		p.c.expectations.Created(p.key, pod.UID)
		return nil
	})
	calls.Wait()
	if err == nil && (len(p.create) > burst || len(p.remove) > burst) {
		p.c.Add(p.key)
	}
	return errors.Join(append(errs, err)...)
}

// trim removes old revisions that no pod uses.
func (p *plan) trim(ctx context.Context, revisions []*appsv1.ControllerRevision) error {
	used := map[string]bool{p.hash: true}
	for _, pods := range p.pods {
		for _, pod := range pods {
			used[pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]] = true
		}
	}
	return p.c.revisions.Trim(ctx, revisions, p.ds.Spec.RevisionHistoryLimit, func(r *appsv1.ControllerRevision) bool {
		return used[r.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]]
	})
}
