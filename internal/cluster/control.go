package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"time"

	"github.com/bayplan/bayplan/internal/store"
)

// Status is what a running cluster says about itself.
type Status struct {
	Version   string
	GoVersion string
	PID       int
	Flags     map[string]string
	// Host is the URL of the API server.
	Host   string `json:",omitempty"`
	PKIDir string `json:",omitempty"`
	// Timeline says what was ready when, counted from the start.
	Timeline []Mark
	Store    *store.Facts `json:",omitempty"`
	// StoreError says why the store has no facts.
	StoreError string `json:",omitempty"`
}

// startControl answers the administrator: whoever may enter the data directory.
func (c *Cluster) startControl() error {
	listener, err := c.data.Listen(c.config.Version)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", c.serveStatus)
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) { c.askOnce.Do(func() { close(c.stopAsked) }) })
	mux.HandleFunc("GET /snapshot", c.serveSnapshot)
	mux.HandleFunc("GET /goroutines", func(w http.ResponseWriter, _ *http.Request) { _ = pprof.Lookup("goroutine").WriteTo(w, 1) })
	mux.HandleFunc("GET /heap", func(w http.ResponseWriter, _ *http.Request) { _ = pprof.Lookup("heap").WriteTo(w, 0) })
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	c.onStop(func(context.Context) error {
		err := server.Close()
		<-ended
		return err
	})
	return nil
}

// use calls f with the store, unless there is none at the moment. The store is not closed before f has returned, which it must when its context ends.
func (c *Cluster) use(r *http.Request, f func(ctx context.Context, state *store.Store)) bool {
	c.inUse.RLock()
	defer c.inUse.RUnlock()
	if c.state == nil {
		return false
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.stateContext, cancel)()
	f(ctx, c.state)
	return true
}

// lend lets administrators use the store from now on, until endLoans.
func (c *Cluster) lend(s *store.Store) {
	c.inUse.Lock()
	defer c.inUse.Unlock()
	c.state = s
	c.stateContext, c.endState = context.WithCancel(context.Background())
}

// endLoans waits until nobody uses the store any more.
func (c *Cluster) endLoans() {
	c.endState()
	c.inUse.Lock()
	defer c.inUse.Unlock()
	c.state = nil
}

func (c *Cluster) serveStatus(w http.ResponseWriter, r *http.Request) {
	out := Status{Version: c.config.Version, GoVersion: runtime.Version(), PID: os.Getpid(), Flags: c.config.Flags, Timeline: c.times.all()}
	c.use(r, func(ctx context.Context, state *store.Store) {
		out.Host, out.PKIDir = c.control.host(), c.control.pkiDir
		facts, err := state.Facts(ctx)
		if out.Store = &facts; err != nil {
			out.Store, out.StoreError = nil, err.Error()
		}
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

func (c *Cluster) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	// An error in the middle is one of the stream, which is then shorter than its checksum allows.
	first := &firstWrite{ResponseWriter: w}
	there := c.use(r, func(ctx context.Context, state *store.Store) {
		// A reader that stands still must not keep the cluster from stopping.
		defer context.AfterFunc(ctx, func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0)) })()
		if err := state.WriteSnapshot(ctx, first); err != nil && !first.written {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	if !there {
		http.Error(w, "the cluster is starting or stopping", http.StatusServiceUnavailable)
	}
}

// firstWrite notes whether anything was written.
type firstWrite struct {
	http.ResponseWriter
	written bool
}

func (f *firstWrite) Write(data []byte) (int, error) {
	f.written = true
	return f.ResponseWriter.Write(data)
}
