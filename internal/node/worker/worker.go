package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/probe"
	"github.com/bayplan/bayplan/internal/node/repeated"
	"github.com/bayplan/bayplan/internal/node/runtime"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// Volumes makes a pod's volumes usable.
type Volumes interface {
	// SetUp makes all volumes of the pod present and their content current.
	SetUp(ctx context.Context, pod *v1.Pod) error
	// Refreshes tells whether the pod has volumes whose content changes.
	Refreshes(pod *v1.Pod) bool
	// Mounts returns the mounts of one container.
	Mounts(ctx context.Context, pod *v1.Pod, c *v1.Container, env map[string]string) ([]*cri.Mount, error)
	// Unmount takes the mounts away that SetUp and Mounts made, and keeps the rest.
	Unmount(uid types.UID) error
	// TearDown removes all that SetUp made for the pod.
	TearDown(ctx context.Context, uid types.UID) error
}

// Users gives pods with a user namespace their users on the machine.
type Users interface {
	// Take returns the first user of the pod, whose directory is there: the same for every call.
	Take(uid types.UID) (int64, error)
}

// Deps is what all workers of a node share.
type Deps struct {
	Client      kubernetes.Interface
	Runtime     runtime.Service
	RuntimeName string
	Recorder    record.EventRecorder
	Clock       clock.Clock
	// Node returns the node as it is now.
	Node    func() *translate.Node
	Sources translate.Sources
	Images  *image.Puller
	Volumes Volumes
	Probes  *probe.Prober
	// Users gives pods with a user namespace their users.
	Users Users
	// Cgroups is nil where nobody but the runtime makes cgroups.
	Cgroups Cgroups
	// Room tells whether what the pod asks for fits beside the others: the reason why not (Infeasible, Deferred) and a message, or nothing.
	// As long as the others are not known, neither is that.
	Room func(pod *v1.Pod) (reason, message string, known bool)
}

// Worker runs one pod. Make it with New, start it with Run.
type Worker struct {
	deps *Deps
	uid  types.UID

	mu   sync.Mutex
	pod  *v1.Pod
	gone bool
	// end is a wish of the agent that the loop has not taken over yet.
	end *lifecycle.Ending
	// mirror is the object that shows the pod in the API if the pod is not one of the API, nil while there is none.
	mirror *v1.Pod
	static bool

	poke    chan struct{}
	dirty   atomic.Bool
	results chan func(context.Context)
	stopped chan struct{}
	ops     sync.WaitGroup

	// What follows belongs to the loop.
	memory    lifecycle.Memory
	observed  lifecycle.Observed
	messages  map[string]string
	busy      map[string]*op
	updates   map[string]bool
	starting  *op
	sandbox   *op
	computed  *v1.PodStatus
	probes    map[string]*probing
	writer    writer
	closing   closing
	refresher refresher
	quiet     bool // Run has returned
	failures  repeated.Log

	// For other goroutines to read.
	phase   atomic.Value // v1.PodPhase
	address atomic.Pointer[string]
	granted atomic.Pointer[v1.Pod]
	// limits are those that the pod's cgroup was given last.
	limits atomic.Pointer[cri.LinuxContainerResources]
}

// op is one action in flight.
type op struct {
	cancel    context.CancelFunc
	container string
	grace     time.Duration
}

// New makes the worker of a pod.
func New(deps *Deps, pod *v1.Pod) *Worker {
	w := &Worker{
		deps: deps, uid: pod.UID, pod: pod, poke: make(chan struct{}, 1), results: make(chan func(context.Context)),
		stopped: make(chan struct{}), messages: map[string]string{}, busy: map[string]*op{}, updates: map[string]bool{}, probes: map[string]*probing{},
	}
	w.dirty.Store(true)
	return w
}

// Update gives the worker a newer pod.
func (w *Worker) Update(pod *v1.Pod) {
	w.mu.Lock()
	w.pod = pod
	w.mu.Unlock()
	w.wake()
}

// NewStatic makes the worker of a pod that is not one of the API. Its status is written to its mirror.
func NewStatic(deps *Deps, pod *v1.Pod) *Worker {
	w := New(deps, pod)
	w.static = true
	return w
}

// Mirror gives the worker the object that shows its pod in the API, nil when there is none any more.
func (w *Worker) Mirror(object *v1.Pod) {
	w.mu.Lock()
	w.mirror = object
	w.mu.Unlock()
	w.wake()
}

// shown is the object of the API to which the pod's status belongs, nil when there is none.
func (w *Worker) shown(pod *v1.Pod) *v1.Pod {
	if !w.static {
		return pod
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mirror
}

// Gone tells that the pod is not in the API any more.
func (w *Worker) Gone() {
	w.mu.Lock()
	w.gone = true
	w.mu.Unlock()
	w.wake()
}

// End ends the pod for a reason of the node: refused at admission, evicted.
func (w *Worker) End(e lifecycle.Ending) {
	w.mu.Lock()
	w.end = &e
	w.mu.Unlock()
	w.wake()
}

// Poke tells that something of the pod changed in the runtime.
func (w *Worker) Poke() {
	w.dirty.Store(true)
	w.wake()
}

// Pod returns the newest pod that the worker was given, with the status that it last computed.
func (w *Worker) Pod() *v1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod
}

// Finished tells whether the pod has ended for good and takes nothing of the node any more.
func (w *Worker) Finished() bool {
	p, _ := w.phase.Load().(v1.PodPhase)
	return p == v1.PodSucceeded || p == v1.PodFailed
}

// Ending tells whether the pod was deleted, or the node has ended it.
func (w *Worker) Ending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end != nil || w.gone || w.pod.DeletionTimestamp != nil
}

func (w *Worker) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

// Run works until the pod is gone from the API and the node, or ctx ends. Only the former returns true.
func (w *Worker) Run(ctx context.Context) bool {
	pod := w.Pod()
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("pod", klog.KObj(pod), "podUID", w.uid))
	ctx, cancel := context.WithCancel(ctx)
	defer w.ops.Wait()
	defer close(w.stopped)
	defer cancel()
	w.memory.Interrupted = w.wasInterrupted()
	timer := w.deps.Clock.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next := w.step(ctx)
		if w.closing.done {
			return true
		}
		if next.IsZero() {
			timer.Reset(time.Hour)
		} else {
			timer.Reset(max(0, next.Sub(w.deps.Clock.Now())))
		}
		select {
		case <-ctx.Done():
			return false
		case <-w.poke:
		case apply := <-w.results:
			apply(ctx)
		case <-timer.C():
		}
	}
}

// step is one round: look, decide, act. It returns when to look again.
func (w *Worker) step(ctx context.Context) time.Time {
	pod, gone := w.desired()
	if w.dirty.Swap(false) {
		observed, err := w.observe(ctx)
		if err != nil {
			w.failures.Error(ctx, err, "Cannot see what the runtime has of the pod; trying again")
			w.dirty.Store(true)
			return w.deps.Clock.Now().Add(time.Second)
		}
		w.observed = observed
		w.noteAddress()
		if w.computed == nil {
			w.adopt(pod)
		}
	}
	retry := w.grant(pod)
	base := w.base(pod)
	plan := lifecycle.Decide(lifecycle.Input{
		Pod: base, Gone: gone, Now: w.deps.Clock.Now(), Observed: w.observed, Memory: &w.memory, Busy: w.inFlight(),
		Host: lifecycle.Host{IPs: w.deps.Node().IPs, Runtime: w.deps.RuntimeName},
	})
	for _, e := range plan.Events {
		w.event(pod, e.Container, e.Type, e.Reason, e.Message)
	}
	if plan.Stage != lifecycle.StageRunning && w.starting != nil {
		w.starting.cancel()
	}
	for _, a := range plan.Actions {
		klog.FromContext(ctx).V(4).Info("Acting", "action", a.String())
		w.launch(ctx, pod, a)
	}
	w.computed = &plan.Status
	if plan.Stage == lifecycle.StageEnded {
		w.phase.Store(plan.Status.Phase)
	}
	w.syncProbes(ctx, pod, plan.Stage)
	wake := earlier(earlier(plan.Wake, retry), w.refresh(ctx, pod, plan.Stage))
	if !gone {
		wake = earlier(wake, w.write(ctx, pod))
	}
	return earlier(wake, w.close(ctx, pod, gone, plan.Stage))
}

// noteAddress keeps the pod's address for the hooks.
func (w *Worker) noteAddress() {
	for i := range w.observed.Sandboxes {
		if s := &w.observed.Sandboxes[i]; s.Ready && len(s.IPs) > 0 {
			w.address.Store(&s.IPs[0])
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// desired is the newest wish.
func (w *Worker) desired() (*v1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil && w.memory.Ending == nil {
		w.memory.Ending = w.end
	}
	return w.pod, w.gone
}

// base is the pod with the newest status that is known: the agent's own part as last computed, which may not have reached the API yet.
func (w *Worker) base(pod *v1.Pod) *v1.Pod {
	if w.computed == nil {
		return pod
	}
	p := *pod
	p.Status = *w.computed
	p.Status.NominatedNodeName = pod.Status.NominatedNodeName
	p.Status.ResourceClaimStatuses = pod.Status.ResourceClaimStatuses
	p.Status.ExtendedResourceClaimStatus = pod.Status.ExtendedResourceClaimStatus
	p.Status.Conditions = nil
	for _, c := range w.computed.Conditions {
		if lifecycle.OwnCondition(c.Type) {
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
	}
	for _, c := range pod.Status.Conditions {
		if !lifecycle.OwnCondition(c.Type) {
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
	}
	return &p
}

func (w *Worker) inFlight() lifecycle.Busy {
	b := lifecycle.Busy{Sandbox: w.sandbox != nil, Stops: make(map[string]time.Duration, len(w.busy)), Updates: w.updates}
	if w.starting != nil {
		b.Start = w.starting.container
	}
	for id, o := range w.busy {
		b.Stops[id] = o.grace
	}
	return b
}
