package controllertest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// watcher is one open watch.
type watcher struct {
	view  view
	delay func() time.Duration // how late the next event is delivered; may be nil
	mu    sync.Mutex
	queue [][]byte
	more  chan struct{}
}

// send queues an event as the watch's selector sees it.
func (w *watcher) send(e event) {
	is := e.kind != watch.Deleted && w.view.matches(e.object)
	was := e.before != nil && w.view.matches(e.before)
	var kind watch.EventType
	shown := e.object
	switch {
	case is && was:
		kind = watch.Modified
	case is:
		kind = watch.Added
	case was:
		kind = watch.Deleted
	default:
		return
	}
	w.push(kind, w.view.show(shown))
}

func (w *watcher) push(kind watch.EventType, shown any) {
	line, err := json.Marshal(map[string]any{"type": kind, "object": shown})
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	w.queue = append(w.queue, line)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// watch opens a watch: what there is (for a watch list) or what came after a version, and then what comes.
func (a *API) watch(req *http.Request, r Resource, namespace string) *http.Response {
	q := req.URL.Query()
	w := &watcher{view: newView(req, r, namespace), delay: a.WatchDelay, more: make(chan struct{}, 1)}
	t := a.table(r.GroupVersionResource)
	if q.Get("sendInitialEvents") == "true" {
		for _, o := range t.list(namespace) {
			w.send(event{kind: watch.Added, object: o})
		}
		w.push(watch.Bookmark, w.bookmark(a.versionString(), r))
	} else {
		from := parseVersion(q.Get("resourceVersion"))
		for _, e := range t.history {
			if e.version > from {
				w.send(e)
			}
		}
	}
	t.watchers[w] = true
	reader, writer := io.Pipe()
	go func() {
		w.pump(req.Context(), writer)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(t.watchers, w)
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: jsonHeader(), Body: reader, Request: req}
}

func (w *watcher) bookmark(version string, r Resource) any {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(r.GVK())
	o.SetResourceVersion(version)
	o.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	return w.view.show(o)
}

// pump writes queued events until the client goes away.
func (w *watcher) pump(ctx context.Context, out *io.PipeWriter) {
	stop := context.AfterFunc(ctx, func() { out.CloseWithError(ctx.Err()) })
	defer stop()
	for {
		w.mu.Lock()
		lines := w.queue
		w.queue = nil
		w.mu.Unlock()
		for _, line := range lines {
			if w.delay != nil {
				time.Sleep(w.delay())
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return
			}
		}
		if len(lines) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.more:
		}
	}
}
