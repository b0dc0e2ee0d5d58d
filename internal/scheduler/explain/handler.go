// Package explain carries what the scheduler says of a pod to the people who ask.
//
//	bayplan explain ──► API server, which authenticates and authorizes ──► Handler ──► the owner ──► core.Explanation
//
// The path is one without resources: who may get it is a rule with nonResourceURLs in RBAC.
package explain

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
)

// Path is where the API server answers. Its parameters are namespace, pod, node, top and misses.
const Path = "/scheduler/explain"

// most is how many nodes a list may have.
const most = 1000

// Explainer is a scheduler.
type Explainer interface {
	Explain(ctx context.Context, pod *v1.Pod, options cycle.RecordOptions) (*core.Explanation, error)
}

// Handler answers with an Explanation in JSON, or a Status.
type Handler struct {
	Scheduler Explainer
	Pods      listers.PodLister
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x, err := h.explain(r)
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		if told, ok := err.(apierrors.APIStatus); ok {
			status = told.Status()
		}
		status.APIVersion, status.Kind = "v1", "Status"
		write(r.Context(), w, int(status.Code), status)
		return
	}
	write(r.Context(), w, http.StatusOK, x)
}

func (h *Handler) explain(r *http.Request) (*core.Explanation, error) {
	if r.Method != http.MethodGet {
		return nil, apierrors.NewMethodNotSupported(v1.Resource("pods"), r.Method)
	}
	query := r.URL.Query()
	options := cycle.RecordOptions{Top: 5, Misses: 5, Node: query.Get("node")}
	for name, into := range map[string]*int{"top": &options.Top, "misses": &options.Misses} {
		if text := query.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n > most {
				return nil, apierrors.NewBadRequest(name + " is " + strconv.Quote(text) + ", must be a number from 0 to 1000")
			}
			*into = n
		}
	}
	name, namespace := query.Get("pod"), query.Get("namespace")
	if name == "" || namespace == "" {
		return nil, apierrors.NewBadRequest("the parameters namespace and pod must be set")
	}
	pod, err := h.Pods.Pods(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return h.Scheduler.Explain(r.Context(), pod, options)
}

func write(ctx context.Context, w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		klog.FromContext(ctx).V(2).Info("Could not answer what the scheduler says of a pod", "err", err)
	}
}
