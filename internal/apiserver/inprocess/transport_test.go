package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(ctx context.Context, t *testing.T, handler http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", "https://host:1/path?a=b", strings.NewReader("sent"))
	if err != nil {
		t.Fatal(err)
	}
	return Transport{handler}.RoundTrip(req)
}

func TestRequestAndResponse(t *testing.T) {
	resp, err := get(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Test", "1")
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "1")
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.RequestURI, r.Host, r.RemoteAddr, body)
	})
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "POST /path?a=b host:1 127.0.0.1:0 sent" {
		t.Errorf("body %q, %v", body, err)
	}
	if resp.StatusCode != http.StatusTeapot || resp.Header.Get("X-Test") != "1" || resp.Header.Get("X-Late") != "" {
		t.Errorf("status %d, header %v", resp.StatusCode, resp.Header)
	}
}

func TestSilentHandlerIsOK(t *testing.T) {
	resp, err := get(t.Context(), t, func(http.ResponseWriter, *http.Request) {})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 0 {
		t.Errorf("body %q, %v", body, err)
	}
}

// TestStream: what a handler flushes can be read while it still runs.
func TestStream(t *testing.T) {
	next := make(chan bool)
	resp, err := get(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		for range 3 {
			<-next
			_, _ = io.WriteString(w, "event")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	for range 3 {
		next <- true
		if n, err := resp.Body.Read(buffer); err != nil || string(buffer[:n]) != "event" {
			t.Fatalf("read %q, %v", buffer[:n], err)
		}
	}
	if _, err := resp.Body.Read(buffer); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

func TestPanicAborts(t *testing.T) {
	resp, err := get(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	})
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); string(body) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("body %q, %v", body, err)
	}
}

// TestCancelBefore: a caller that gives up gets its answer at once, whatever the handler does.
func TestCancelBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave := make(chan bool), make(chan bool)
	defer close(leave)
	go func() { <-entered; cancel() }()
	_, err := get(ctx, t, func(http.ResponseWriter, *http.Request) { entered <- true; <-leave })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want Canceled", err)
	}
}

// TestReaderEndsHandler: closing the body, or the caller's context, ends the handler's request and its writes.
func TestReaderEndsHandler(t *testing.T) {
	for name, end := range map[string]func(*http.Response, context.CancelFunc){
		"close":  func(r *http.Response, _ context.CancelFunc) { _ = r.Body.Close() },
		"cancel": func(_ *http.Response, cancel context.CancelFunc) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				resp, err := get(ctx, t, func(w http.ResponseWriter, r *http.Request) {
					for r.Context().Err() == nil {
						if _, err := w.Write(make([]byte, maxBuffered)); err != nil {
							break
						}
					}
					<-r.Context().Done()
					_, err := w.Write([]byte("x"))
					ended <- err
				})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second) // fake time: the handler is blocked on its full buffer by now
				end(resp, cancel)
				if err := <-ended; err == nil {
					t.Error("a write to nobody succeeded")
				}
			})
		})
	}
}

// TestBounded: a reader that does not read stops the writer, not the machine.
func TestBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		written := 0
		resp, err := get(t.Context(), t, func(w http.ResponseWriter, r *http.Request) {
			for range 100 {
				n, err := w.Write(make([]byte, 1<<18))
				if err != nil {
					return
				}
				written += n
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if written > maxBuffered+1<<18 {
			t.Errorf("%d bytes wait for a reader, want at most %d and one write", written, maxBuffered)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || n != 100<<18 {
			t.Errorf("read %d, %v", n, err)
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	transport := Transport{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "answer") })}
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequestWithContext(b.Context(), "GET", "https://host/path", nil)
		resp, err := transport.RoundTrip(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
