// Package inprocess lets the parts that share the API server's process call it without a connection: a request is a call of the server's handler. It passes the
// same authentication, authorization and admission as any other; what is saved is TLS, HTTP/2 framing and two copies.
package inprocess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Transport is an http.RoundTripper onto a handler.
type Transport struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper. It returns when the handler has begun its answer; the body is read while the handler writes.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	inner := req.Clone(ctx)
	inner.RequestURI = req.URL.RequestURI()
	inner.RemoteAddr = "127.0.0.1:0"
	inner.Proto, inner.ProtoMajor, inner.ProtoMinor = "HTTP/2.0", 2, 0
	if inner.Host == "" {
		inner.Host = req.URL.Host
	}
	if inner.Body == nil {
		inner.Body = http.NoBody
	}
	w := newWriter(ctx, cancel)
	go func() {
		defer cancel()
		defer w.finish(inner.Body)
		t.Handler.ServeHTTP(w, inner)
	}()
	select {
	case <-w.started:
	case <-ctx.Done():
		// The handler may have started and ended at the same moment.
		select {
		case <-w.started:
		default:
			return nil, context.Cause(req.Context())
		}
	}
	return w.response(req), nil
}

// maxBuffered bounds what an answer holds that its reader has not read yet.
const maxBuffered = 1 << 20

// writer is the handler's http.ResponseWriter on one side and the body of the response on the other.
type writer struct {
	ctx     context.Context
	cancel  context.CancelFunc
	header  http.Header
	started chan struct{}

	mu     sync.Mutex
	moved  sync.Cond // the buffer grew or shrank, or one side is done
	status int
	sent   http.Header
	buffer []byte
	done   error // set when the handler returned: io.EOF, or what it failed with
	closed bool  // the reader went away
}

func newWriter(ctx context.Context, cancel context.CancelFunc) *writer {
	w := &writer{ctx: ctx, cancel: cancel, header: http.Header{}, started: make(chan struct{})}
	w.moved.L = &w.mu
	return w
}

func (w *writer) Header() http.Header { return w.header }

func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(status)
}

func (w *writer) begin(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	close(w.started)
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin(http.StatusOK)
	for len(w.buffer) > maxBuffered && !w.closed && w.ctx.Err() == nil {
		w.moved.Wait()
	}
	if w.closed || w.ctx.Err() != nil {
		return 0, errors.New("the reader of the response went away")
	}
	w.buffer = append(w.buffer, p...)
	w.moved.Broadcast()
	return len(p), nil
}

// Flush implements http.Flusher: what is written can be read at once, so only the header is left to send.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// CloseNotify implements http.CloseNotifier, by which the API server's wrappers recognise a writer that can stream.
func (w *writer) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { gone <- true })
	return gone
}

// finish ends the response when the handler returns; a panic aborts it, as net/http does.
func (w *writer) finish(body io.Closer) {
	failure := recover()
	_ = body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = io.EOF
	if failure != nil {
		w.done = io.ErrUnexpectedEOF
	}
	w.begin(http.StatusOK)
	w.moved.Broadcast()
}

func (w *writer) response(req *http.Request) *http.Response {
	w.mu.Lock()
	defer w.mu.Unlock()
	stop := context.AfterFunc(w.ctx, w.moved.Broadcast)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: w.sent, ContentLength: -1, Request: req,
		Body: &body{w, req.Context(), stop},
	}
}

// body is the reader's side.
type body struct {
	*writer
	request context.Context
	stop    func() bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.buffer) == 0 && b.done == nil && !b.closed && b.request.Err() == nil {
		b.moved.Wait()
	}
	switch {
	case len(b.buffer) > 0:
		n := copy(p, b.buffer)
		b.buffer = b.buffer[n:]
		if len(b.buffer) == 0 {
			b.buffer = nil
		}
		b.moved.Broadcast()
		return n, nil
	case b.closed:
		return 0, http.ErrBodyReadAfterClose
	case b.done != nil:
		return 0, b.done
	}
	return 0, b.request.Err()
}

func (b *body) Close() error {
	b.mu.Lock()
	b.closed = true
	b.buffer = nil
	b.moved.Broadcast()
	b.mu.Unlock()
	b.stop()
	b.cancel()
	return nil
}
