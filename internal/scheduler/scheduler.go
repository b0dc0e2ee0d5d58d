// Package scheduler decides on which node each pod runs.
//
// A Scheduler is one goroutine that owns all scheduling state (package core) between two edges that talk to the API
// server:
//
//	source: informers ──► mailbox ──► owner: ledger, queue, cycle ──► bind: pool of workers ──► API server
//	                        ▲                                                     │
//	                        └───────────── bound, or failed ◄─────────────────────┘
//
// The owner applies everything that is in the mailbox, makes one decision, and looks into the mailbox again. A pod that
// has been given a node counts there at once (it is assumed); binding happens meanwhile. If binding fails the pod is
// forgotten there and tried again after a back-off.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/bind"
	"github.com/bayplan/bayplan/internal/scheduler/config"
	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/source"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DefaultName is the scheduler name of pods that name none.
const DefaultName = v1.DefaultSchedulerName

// Config is what a Scheduler is made from. Client and Informers must be set.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	// Clock is the real one if nil.
	Clock clock.WithTicker
	// Seed starts the generator that breaks ties between nodes.
	Seed uint64
	// Configuration holds the profiles; nil stands for the default one.
	Configuration *config.Config
	// SchedulerName renames the default profile, if Configuration is nil.
	SchedulerName string
	// Recorder writes events; if nil, events go to the API server.
	Recorder events.EventRecorder
	// Workers bounds how many pods are bound at the same time; if zero, Configuration.Parallelism does.
	Workers int
}

// Scheduler schedules pods until its context ends.
type Scheduler struct {
	config  Config
	core    *core.Core
	events  *source.Mailbox[source.Event]
	source  *source.Source
	pool    *bind.Pool
	client  *bind.Client
	ownSink events.EventBroadcaster
}

// New returns a scheduler that has registered with the informers. Run starts them.
func New(c Config) (*Scheduler, error) {
	if c.Client == nil || c.Informers == nil {
		return nil, errors.New("scheduler: Config.Client and Config.Informers must be set")
	}
	c.complete()
	s := &Scheduler{config: c, events: source.NewMailbox[source.Event](), pool: bind.NewPool(c.Workers)}
	s.client = &bind.Client{Client: c.Client, Recorders: map[string]events.EventRecorder{}, Clock: c.Clock}
	if c.Recorder == nil {
		s.ownSink = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.Client.EventsV1()})
	}
	for _, p := range c.Configuration.Profiles {
		recorder := c.Recorder
		if recorder == nil {
			recorder = s.ownSink.NewRecorder(scheme.Scheme, p.SchedulerName)
		}
		s.client.Recorders[p.SchedulerName] = recorder
	}
	s.core = core.New(core.Config{
		Profiles: c.Configuration.Profiles, Cycle: cycle.Options{Seed: c.Seed}, Queue: c.Configuration.Queue,
	})
	var err error
	s.source, err = source.New(c.Informers, s.events)
	return s, err
}

// complete fills in what was left out.
func (c *Config) complete() {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Configuration == nil {
		c.Configuration = config.Default()
		if c.SchedulerName != "" {
			c.Configuration.Profiles[0].SchedulerName = c.SchedulerName
		}
	}
	if c.Workers == 0 {
		c.Workers = c.Configuration.Parallelism
	}
}

// Run schedules until the context ends. It returns when nothing that it started runs any more, with nil if it ended
// because of the context.
func (s *Scheduler) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("scheduler"))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if s.ownSink != nil {
		if err := s.ownSink.StartRecordingToSinkWithContext(ctx); err != nil {
			return fmt.Errorf("scheduler: recording events: %w", err)
		}
		defer s.ownSink.Shutdown()
	}
	if err := s.source.Discover(s.config.Client.Discovery()); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	s.config.Informers.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), s.source.Synced()...) {
		return nil
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.pool.Run(ctx)
	}()
	s.own(ctx)
	stop()
	<-stopped
	return nil
}

// Explain tells everything that there is to say about a pod: where it is in the queue, and how it would be decided on
// now, and why. It answers while Run runs.
func (s *Scheduler) Explain(ctx context.Context, pod *v1.Pod, options cycle.RecordOptions) (*core.Explanation, error) {
	answer := make(chan *core.Explanation, 1)
	s.events.Put(func(c *core.Core, _ time.Time) { answer <- c.Explain(pod, options) })
	select {
	case x := <-answer:
		return x, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("asking the scheduler about pod %s/%s: %w", pod.Namespace, pod.Name, ctx.Err())
	}
}

// own is the goroutine that owns all scheduling state.
func (s *Scheduler) own(ctx context.Context) {
	var batch []source.Event
	for ctx.Err() == nil {
		batch = s.events.Take(batch)
		now := s.config.Clock.Now()
		for _, apply := range batch {
			apply(s.core, now)
		}
		for _, settled := range s.core.Settled(now) {
			s.volumesSettled(settled)
		}
		if attempt := s.core.Next(now); attempt != nil {
			s.carryOut(ctx, attempt)
			continue
		}
		s.idle(ctx, now)
	}
}

// idle waits until there is something to do.
func (s *Scheduler) idle(ctx context.Context, now time.Time) {
	var wake <-chan time.Time
	if at, ok := s.core.NextWake(); ok {
		timer := s.config.Clock.NewTimer(max(at.Sub(now), 0))
		defer timer.Stop()
		wake = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-s.events.Ready():
	case <-wake:
	}
}

// carryOut has done what was decided.
func (s *Scheduler) carryOut(ctx context.Context, attempt *core.Attempt) {
	if attempt.Diagnosis != nil {
		s.refuse(attempt)
		return
	}
	klog.FromContext(ctx).V(4).Info("Decided", "pod", klog.KObj(attempt.Pod), "node", attempt.Node,
		"feasible", attempt.Decision.Feasible, "score", attempt.Decision.Score)
	if attempt.Volumes != nil {
		s.pool.Do(func(ctx context.Context) { s.writeVolumes(ctx, attempt) })
		return
	}
	s.pool.Do(func(ctx context.Context) { s.bind(ctx, attempt) })
}

// refuse has a pod told why it was not placed, and its victims deleted if it has any.
func (s *Scheduler) refuse(attempt *core.Attempt) {
	report := bind.Report{Reason: v1.PodReasonUnschedulable, Message: attempt.Message()}
	if eviction := attempt.Eviction; eviction != nil {
		report.Nominated, report.Clear = eviction.Node, eviction.Helpless
		for _, victim := range eviction.Victims {
			target := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: victim.Shape.Class.Namespace, Name: victim.Name, UID: victim.UID,
			}}
			s.pool.Do(func(ctx context.Context) { s.evict(ctx, target, attempt) })
		}
	}
	for _, pod := range attempt.Displaced {
		s.pool.Do(func(ctx context.Context) {
			if err := s.client.ClearNomination(ctx, pod); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Could not take back a nomination", "pod", klog.KObj(pod))
			}
		})
	}
	s.pool.Do(func(ctx context.Context) { s.report(ctx, attempt.Pod, report) })
}

// evict runs on a worker.
func (s *Scheduler) evict(ctx context.Context, victim *v1.Pod, attempt *core.Attempt) {
	err := s.client.Evict(ctx, victim, attempt.Pod, attempt.Eviction.Node)
	if err == nil || ctx.Err() != nil {
		return
	}
	klog.FromContext(ctx).Error(err, "Preemption failed", "pod", klog.KObj(attempt.Pod))
	s.events.Put(func(c *core.Core, now time.Time) { c.EvictionFailed(victim.UID, attempt.Pod.UID, now) })
}

// bind runs on a worker.
func (s *Scheduler) bind(ctx context.Context, attempt *core.Attempt) {
	uid := attempt.Pod.UID
	err := s.client.Bind(ctx, attempt.Pod, attempt.Node)
	if err == nil {
		s.events.Put(func(c *core.Core, now time.Time) { c.Bound(uid, now) })
		return
	}
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Binding failed", "pod", klog.KObj(attempt.Pod))
	}
	s.events.Put(func(_ *core.Core, now time.Time) { s.bindFailed(attempt, err, now) })
}

// bindFailed has a pod tried again whose binding, or that of its volumes, failed. It is called by the owner.
func (s *Scheduler) bindFailed(attempt *core.Attempt, err error, now time.Time) {
	report := bind.Report{Reason: v1.PodReasonSchedulerError, Message: err.Error()}
	if s.core.BindFailed(attempt.Pod.UID, now) {
		s.pool.Do(func(ctx context.Context) { s.report(ctx, attempt.Pod, report) })
	}
}

// writeVolumes runs on a worker. The pod is bound once what it writes has come true.
func (s *Scheduler) writeVolumes(ctx context.Context, attempt *core.Attempt) {
	written, err := s.client.BindVolumes(ctx, attempt.Volumes)
	if err == nil {
		s.events.Put(func(c *core.Core, now time.Time) {
			*attempt.Volumes = *written
			c.VolumesWritten(attempt.Pod.UID, now)
		})
		return
	}
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Binding volumes failed", "pod", klog.KObj(attempt.Pod))
	}
	s.events.Put(func(_ *core.Core, now time.Time) { s.bindFailed(attempt, err, now) })
}

// volumesSettled goes on with a pod that has waited for its volumes. It is called by the owner.
func (s *Scheduler) volumesSettled(settled core.Settled) {
	if settled.Err != nil {
		s.bindFailed(settled.Attempt, settled.Err, s.config.Clock.Now())
		return
	}
	s.pool.Do(func(ctx context.Context) { s.bind(ctx, settled.Attempt) })
}

// report runs on a worker.
func (s *Scheduler) report(ctx context.Context, pod *v1.Pod, report bind.Report) {
	if err := s.client.Fail(ctx, pod, report); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Could not record why a pod is not scheduled", "pod", klog.KObj(pod))
	}
}
