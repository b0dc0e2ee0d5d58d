package controllertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Constructor makes a controller.
type Constructor func(ctx context.Context, deps controller.Deps) (controller.Controller, error)

// Env is an API with controllers that run on it. It lives inside a synctest bubble.
type Env struct {
	API    *API
	Client kubernetes.Interface

	start   time.Time
	mu      sync.Mutex
	journal []entry
	kubelet bool
	cancels []context.CancelFunc
}

// entry is something that happened.
type entry struct {
	at   time.Duration
	text string
}

// NewEnv makes an environment; Start adds controllers.
func NewEnv() (*Env, error) {
	e := &Env{API: NewAPI(), start: time.Now()}
	client, err := kubernetes.NewForConfig(e.config())
	e.Client = client
	e.API.Observe = e.observe
	return e, err
}

// outside is the user agent of the environment's own client, whose writes are no news.
const outside = "outside"

func (e *Env) config() *rest.Config {
	config := e.API.Config()
	config.UserAgent = outside
	return config
}

// Deps is what a controller of this environment is made of, with informers of its own.
func (e *Env) Deps() (controller.Deps, error) {
	config := e.API.Config()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return controller.Deps{}, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return controller.Deps{}, err
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return controller.Deps{}, err
	}
	return controller.Deps{
		Client: client, Metadata: meta, Discovery: disco,
		Informers: informers.NewSharedInformerFactory(client, 0),
		Clock:     clock.RealClock{},
		Recorder:  func(string) record.EventRecorder { return recorder{e} },
		RootCA:    []byte("the root certificate"),
		Authority: NewAuthority(),
	}.WithDefaults(), nil
}

// Start runs controllers and returns a function that stops them and waits until they have ended.
func (e *Env) Start(constructors ...Constructor) (func(), error) {
	deps, err := e.Deps()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	var controllers []controller.Controller
	for _, construct := range constructors {
		c, err := construct(ctx, deps)
		if err != nil {
			cancel()
			return nil, err
		}
		controllers = append(controllers, c)
	}
	deps.Informers.StartWithContext(ctx)
	for _, c := range controllers {
		group.Go(func() { c.Run(ctx) })
	}
	stop := func() {
		cancel()
		group.Wait()
		deps.Informers.Shutdown()
	}
	e.cancels = append(e.cancels, stop)
	return stop, nil
}

// Stop stops everything.
func (e *Env) Stop() {
	for _, stop := range e.cancels {
		stop()
	}
	synctest.Wait()
}

// Settle waits until all controllers have nothing to do until time passes.
func (e *Env) Settle() {
	for {
		synctest.Wait()
		if e.API.writing.Load() > 0 {
			time.Sleep(time.Nanosecond)
			continue
		}
		if !e.kubelet || !e.runPods() {
			return
		}
	}
}

// Advance lets time pass.
func (e *Env) Advance(d time.Duration) {
	e.Settle()
	time.Sleep(d)
	e.Settle()
}

func (e *Env) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.journal = append(e.journal, entry{time.Since(e.start).Round(time.Millisecond), text})
}

// observe writes down what controllers write. Status is left out: how many writes it takes to reach a status depends on how events
// happen to come together.
func (e *Env) observe(r Request) {
	if r.Sub != "status" && r.Agent != outside {
		e.note(r.String())
	}
}

// Journal returns and forgets what happened, as lines. What happened at the same moment is in the order of its text, as its real
// order is left to chance.
func (e *Env) Journal() string {
	e.mu.Lock()
	entries := e.journal
	e.journal = nil
	e.mu.Unlock()
	slices.SortStableFunc(entries, func(a, b entry) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.text, b.text)
	})
	var out strings.Builder
	for i := 0; i < len(entries); {
		n := i
		for n < len(entries) && entries[n] == entries[i] {
			n++
		}
		fmt.Fprintf(&out, "%s %s", entries[i].at, entries[i].text)
		if n-i > 1 {
			fmt.Fprintf(&out, " (%d times)", n-i)
		}
		out.WriteByte('\n')
		i = n
	}
	return out.String()
}

// recorder writes events into the journal.
type recorder struct{ env *Env }

func (r recorder) Event(object runtime.Object, kind, reason, message string) {
	name := "?"
	if accessor, err := meta.Accessor(object); err == nil {
		name = accessor.GetName()
	}
	r.env.note(fmt.Sprintf("event %s on %s: %s %s", kind, name, reason, message))
}

func (r recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

// Bubble runs f in a synctest bubble with an environment in which the controllers run.
func Bubble(t *testing.T, f func(t *testing.T, e *Env), constructors ...Constructor) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := NewEnv()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Stop()
		if _, err := e.Start(constructors...); err != nil {
			t.Fatal(err)
		}
		e.Settle()
		f(t, e)
	})
}

// Kubelet turns the player of scheduler and nodes on or off: see Settle.
func (e *Env) Kubelet(on bool) { e.kubelet = on }

// Command carries out one command of the scripts and returns what it printed and what happened.
func (e *Env) Command(text, input string) string { return e.command(text, input) }

// Fingerprint is the state of the given resources: names without what chance gave them, and status without times.
func (e *Env) Fingerprint(paths map[string][]string) string {
	var out strings.Builder
	for _, resource := range slices.Sorted(maps.Keys(paths)) {
		fmt.Fprintf(&out, "%s\n", resource)
		text, err := e.getObjects(append([]string{resource, "all"}, paths[resource]...))
		if err != nil {
			return err.Error()
		}
		out.WriteString(text)
	}
	return out.String()
}

// Context is a context for requests of the test itself.
func (e *Env) Context() context.Context { return context.Background() }
