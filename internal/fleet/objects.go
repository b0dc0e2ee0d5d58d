package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// objects are NodeGroups and PodBehaviors of the API, beside those that the fleet was made with.
type objects struct {
	groups, behaviors cache.SharedIndexInformer
	// changed are names of groups that have to be looked at; changedRules lets the rules be compiled anew.
	changed      workqueue.TypedRateLimitingInterface[string]
	changedRules chan struct{}
}

// listenToObjects makes the informers of the fleet's own objects.
func (f *Fleet) listenToObjects() error {
	if f.cfg.Dynamic == nil {
		return nil
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(f.cfg.Dynamic, 0)
	o := &objects{
		groups: factory.ForResource(v1alpha1.NodeGroups).Informer(), behaviors: factory.ForResource(v1alpha1.PodBehaviors).Informer(),
		changed:      workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](50*time.Millisecond, retryMax)),
		changedRules: make(chan struct{}, 1),
	}
	f.objects = o
	add := func(u *unstructured.Unstructured) { o.changed.Add(u.GetName()) }
	if _, err := o.groups.AddEventHandler(handlers(add, add)); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	wake := func(*unstructured.Unstructured) {
		select {
		case o.changedRules <- struct{}{}:
		default:
		}
	}
	_, err := o.behaviors.AddEventHandler(handlers(wake, wake))
	return err
}

// startObjects returns when the objects are known. Their informers run until ctx ends, and parts waits for them.
func (f *Fleet) startObjects(ctx context.Context, parts *sync.WaitGroup) bool {
	if f.objects == nil {
		return true
	}
	parts.Go(func() { f.objects.groups.RunWithContext(ctx) })
	parts.Go(func() { f.objects.behaviors.RunWithContext(ctx) })
	if !cache.WaitFor(ctx, "", f.objects.groups.HasSyncedChecker(), f.objects.behaviors.HasSyncedChecker()) {
		return false
	}
	f.compileRules(ctx)
	return true
}

// keepObjects does what NodeGroups and PodBehaviors say, until ctx ends.
func (f *Fleet) keepObjects(ctx context.Context) {
	if f.objects == nil {
		return
	}
	defer context.AfterFunc(ctx, f.objects.changed.ShutDown)()
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() { work(f.objects.changed, func(name string) { f.keepGroup(ctx, name) }) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.objects.changedRules:
			f.compileRules(ctx)
		}
	}
}

// compileRules takes the rules that are there now. One that cannot be understood is left out, and an event on it says so.
func (f *Fleet) compileRules(ctx context.Context) {
	good := append([]v1alpha1.PodBehavior{}, f.cfg.Rules...)
	for _, obj := range f.objects.behaviors.GetStore().List() {
		u := obj.(*unstructured.Unstructured)
		var b v1alpha1.PodBehavior
		err := decode(u, &b)
		if err == nil {
			_, err = behavior.Compile([]v1alpha1.PodBehavior{b})
		}
		if err != nil {
			f.cfg.Recorder.Event(u, corev1.EventTypeWarning, "Invalid", err.Error())
			continue
		}
		good = append(good, b)
	}
	rules, err := behavior.Compile(good)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot take the rules of pods")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = rules
	for _, p := range f.pods {
		if p.node != nil && !p.life.Ended() {
			f.behave(p)
			f.step(p, f.clock.Now())
		}
	}
}

// behave has a pod do from its next run on what rules say now.
func (f *Fleet) behave(p *pod) {
	does, _ := f.rules.For(p.life.API(), labels.Set(p.node.api.Labels), f.cfg.Seed) // an error was told when the pod came
	p.life.Behave(does)
}

// decode reads an object of ours.
func decode(u *unstructured.Unstructured, into any) error {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}
