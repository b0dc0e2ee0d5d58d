package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// What one request may take at most: the server refuses bodies above three megabytes, and what it makes of one is not many times as much.
const (
	fuzzTimeout    = 30 * time.Second
	fuzzWatchTime  = 200 * time.Millisecond
	fuzzAllocation = 512 << 20
)

// fuzzed is a server that is called without a connection, by a user who may do everything. Requests are dry runs, so that the state does not depend on what came before.
type fuzzed struct {
	*api
	// collections and objects are paths, of each kind and of one object of each kind that has that name; subs are the objects' sub-resources, but those that are connections.
	collections, objects, subs []string
}

var connections = []string{"attach", "exec", "log", "portforward", "proxy"}

func startFuzzed(f *testing.F) *fuzzed {
	z := &fuzzed{api: startAPI(f)}
	_, lists, err := z.client.Discovery().ServerGroupsAndResources()
	must(f, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(f, err)
		for _, r := range list.APIResources {
			name, sub, _ := strings.Cut(r.Name, "/")
			path := collectionPath(gv, name, r.Namespaced)
			switch {
			case sub == "":
				z.collections, z.objects = append(z.collections, path), append(z.objects, path+"/a")
			case !slices.Contains(connections, sub):
				z.subs = append(z.subs, path+"/a/"+sub)
			}
		}
	}
	for i := range kindCases {
		path, body := z.seed(f, &kindCases[i])
		z.do(f, http.MethodPost, strings.TrimSuffix(path, "?dryRun=All"), nil, body)
	}
	return z
}

// seed is the request that makes the object of a case.
func (z *fuzzed) seed(f *testing.F, c *kindCase) (path string, body []byte) {
	gvr, gr := schema.ParseResourceArg(c.resource)
	if gvr == nil {
		gvr = &schema.GroupVersionResource{Version: gr.Group, Resource: gr.Resource}
	}
	object := map[string]any{}
	must(f, yaml.Unmarshal([]byte(c.object), &object))
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	metadata["name"] = c.objectName()
	body, err := json.Marshal(object)
	must(f, err)
	for _, path := range z.collections {
		if path == collectionPath(gvr.GroupVersion(), gvr.Resource, true) || path == collectionPath(gvr.GroupVersion(), gvr.Resource, false) {
			return path, body
		}
	}
	f.Fatalf("%s is not served", c.resource)
	return "", nil
}

// do makes a request and checks what is true of any answer. The header's values come in place of the usual ones.
func (z *fuzzed) do(t testing.TB, method, target string, header map[string]string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	u, err := url.ParseRequestURI(target)
	if err != nil || u.Host != "" {
		t.Skip("no request line")
	}
	limit := fuzzTimeout
	if u.Query().Has("watch") || strings.Contains(u.Path, "/watch/") {
		limit = fuzzWatchTime
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r := (&http.Request{
		Method: method, URL: u, RequestURI: target, Proto: "HTTP/2.0", ProtoMajor: 2, Host: "localhost", RemoteAddr: "127.0.0.1:1", ContentLength: int64(len(body)),
		Header: http.Header{"Authorization": {"Bearer " + z.config.BearerToken}, "Content-Type": {"application/json"}}, Body: http.NoBody,
	}).WithContext(ctx)
	if len(body) > 0 {
		r.Body = readCloser{bytes.NewReader(body)}
	}
	for name, value := range header {
		if value == "" {
			continue
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			t.Skip("no header")
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	z.serve(recorder{w, ctx}, r)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > fuzzAllocation {
		t.Errorf("%s %s took %d bytes", method, target, taken)
	}
	checkAnswer(t, w, fmt.Sprintf("%s %s %v %q", method, target, header, body))
	return w
}

// serve lets pass how the server ends a connection.
func (z *fuzzed) serve(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
		}
	}()
	z.server.ServeHTTP(w, r)
}

// recorder is a writer that can stream, as the server's own.
type recorder struct {
	*httptest.ResponseRecorder
	ctx context.Context
}

// CloseNotify implements http.CloseNotifier, by which the server recognises such a writer.
func (r recorder) CloseNotify() <-chan bool {
	gone := make(chan bool, 1)
	context.AfterFunc(r.ctx, func() { gone <- true })
	return gone
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// libraryFault tells mistakes of a client that the library, whose code is in front of ours there, passes on as they are and so as the server's: a strategic merge patch whose directives
// ($setElementOrder, $deleteFromPrimitiveList) do not fit, and a request that gave itself no time ("timeout=1ns"). They are errors without a reason.
func libraryFault(request, answer string) bool {
	return !strings.Contains(answer, `"reason"`) && (strings.Contains(request, "strategic-merge-patch") || strings.Contains(answer, "context deadline exceeded"))
}

// checkAnswer: nothing that a client sends is the server's fault, and what is said to be JSON is.
func checkAnswer(t testing.TB, w *httptest.ResponseRecorder, request string) {
	t.Helper()
	if w.Code == http.StatusInternalServerError && !libraryFault(request, w.Body.String()) {
		t.Errorf("%.2000s: %d %.2000s", request, w.Code, w.Body)
	}
	if w.Code >= http.StatusBadRequest && w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
		t.Errorf("%.2000s: %d is no JSON: %.2000s", request, w.Code, w.Body)
	}
}

func pick[T any](list []T, n uint16) T { return list[int(n)%len(list)] }
