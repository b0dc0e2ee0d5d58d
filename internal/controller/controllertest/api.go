package controllertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// API is a Kubernetes API in memory. Use Config for the clients.
type API struct {
	// Fault, if set, is asked before a request is answered and again, with done set, after a write took place. An error is given to
	// the client in place of the answer.
	Fault func(req Request, done bool) error
	// WatchDelay, if set, is how late each event of a watch comes. Without it a write waits until all clients know of the writes before it: what
	// controllers do then does not depend on which of them hears first.
	WatchDelay func() time.Duration
	// Observe, if set, is told of every write that took place, while no other one can.
	Observe func(req Request)

	turn      chan struct{} // taken by the write whose turn it is
	writing   atomic.Int32  // writes that wait for their turn or have it
	mu        sync.Mutex
	resources []Resource
	tables    map[schema.GroupVersionResource]*table
	version   int64
	uids      map[string]int
	names     map[string]int
	allowed   map[permission]bool
}

// NewAPI makes an empty API with the namespaces default and kube-system.
func NewAPI() *API {
	a := &API{resources: builtinResources(), tables: map[schema.GroupVersionResource]*table{}, names: map[string]int{}, uids: map[string]int{}, allowed: map[permission]bool{}, turn: make(chan struct{}, 1)}
	namespaces := *a.find(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, name := range []string{"default", "kube-system"} {
		ns := &object{Object: map[string]any{}}
		ns.SetName(name)
		a.stamp(namespaces, ns, outside)
		a.put(namespaces, ns)
	}
	return a
}

// Config is a client configuration that leads here.
func (a *API) Config() *rest.Config {
	return &rest.Config{Host: "http://api.test", Transport: a, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// Request is a request as the API understood it.
type Request struct {
	Verb            string // get, list, watch, create, update, patch, delete, deletecollection
	Resource        Resource
	Namespace, Name string
	Sub             string
	Agent           string // the client's user agent
}

// String is the request in the way that transcripts show it.
func (r Request) String() string {
	s := r.Verb + " " + r.Resource.Resource
	if r.Sub != "" {
		s += "/" + r.Sub
	}
	if r.Namespace != "" {
		s += " " + r.Namespace + "/" + r.Name
	} else {
		s += " " + r.Name
	}
	return s
}

func (r Request) writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return r.Resource.Resource != reviews
}

// RoundTrip answers a request.
func (a *API) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		req.Body.Close()
	}
	if req.Method != http.MethodGet && a.WatchDelay == nil {
		defer a.inTurn()()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.parse(req)
	if err != nil {
		if answer, code := a.discovery(req.URL.Path); answer != nil {
			return respond(req, code, answer), nil
		}
		return respondError(req, err), nil
	}
	if a.Fault != nil {
		if err := a.Fault(r, false); err != nil {
			return respondError(req, err), nil
		}
	}
	if r.Verb == "watch" {
		return a.watch(req, r.Resource, r.Namespace), nil
	}
	answer, code, err := a.handle(req, &r, body)
	if err != nil {
		return respondError(req, err), nil
	}
	if r.writes() {
		if a.Observe != nil {
			a.Observe(r)
		}
		if a.Fault != nil {
			if err := a.Fault(r, true); err != nil {
				return respondError(req, err), nil
			}
		}
	}
	return respond(req, code, answer), nil
}

// inTurn waits until everybody has taken in the writes before this one, and returns what ends the turn. Fake time passes only when nobody has anything to do.
func (a *API) inTurn() (end func()) {
	a.writing.Add(1)
	a.turn <- struct{}{}
	time.Sleep(time.Nanosecond)
	return func() {
		<-a.turn
		a.writing.Add(-1)
	}
}

// parse reads the request's path and method.
func (a *API) parse(req *http.Request) (Request, error) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var r Request
	var gvr schema.GroupVersionResource
	switch {
	case parts[0] == "api" && len(parts) > 2:
		gvr.Version, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		gvr.Group, gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return r, apierrors.NewNotFound(gvr.GroupResource(), req.URL.Path)
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" {
		r.Namespace, parts = parts[1], parts[2:]
	}
	gvr.Resource = parts[0]
	resource := a.find(gvr)
	if resource == nil {
		return r, apierrors.NewNotFound(gvr.GroupResource(), "")
	}
	r.Resource = *resource
	if len(parts) > 1 {
		r.Name = parts[1]
	}
	if len(parts) > 2 {
		r.Sub = parts[2]
	}
	r.Verb, r.Agent = verb(req, r.Name), req.UserAgent()
	return r, nil
}

func verb(req *http.Request, name string) string {
	switch req.Method {
	case http.MethodGet:
		switch {
		case req.URL.Query().Get("watch") == "true":
			return "watch"
		case name == "":
			return "list"
		}
		return "get"
	case http.MethodDelete:
		if name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	}
	return strings.ToLower(req.Method)
}

func jsonHeader() http.Header { return http.Header{"Content-Type": []string{"application/json"}} }

func respond(req *http.Request, code int, answer any) *http.Response {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Header: jsonHeader(), Request: req,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func respondError(req *http.Request, err error) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(), Reason: metav1.StatusReasonInternalError}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return respond(req, int(status.Code), status)
}

func (a *API) versionString() string { return strconv.FormatInt(a.version, 10) }

// Objects lists what is stored of a resource. It is for Observe, which runs while nothing else can change anything; the objects must
// not be changed.
func (a *API) Objects(plural string) []*object {
	var out []*object
	for gvr, t := range a.tables {
		if gvr.Resource == plural {
			out = append(out, t.list("")...)
		}
	}
	return out
}

// FromOutside tells whether the request comes from the environment itself and not from a controller.
func (r Request) FromOutside() bool { return r.Agent == outside }
