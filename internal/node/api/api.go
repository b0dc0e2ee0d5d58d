// Package api serves the node API, as the kubelet does: what the API server asks a node for on behalf of kubectl and others.
//
//	GET  /healthz                                     whether the agent is alive
//	GET  /pods                                        the pods of the node
//	GET  /containerLogs/{namespace}/{pod}/{container} logs, with the options of v1.PodLogOptions as the query
//	GET  /stats/summary                               what pods use
//	GET  /metrics/resource                            the same for Prometheus
//	*    /exec, /attach, /portForward                 streams, handed on to the container runtime's streaming server
//
// It is served over TLS. A client has to show a certificate by a known authority with a known common name: the API server's.
package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/runtime"
	"github.com/bayplan/bayplan/internal/nodeserve"
)

// Server is the node API. All fields but one of the certificates have to be set.
type Server struct {
	Runtime runtime.Service
	// Pods returns the pods of the node.
	Pods    func() []*v1.Pod
	RootDir string
	Node    string
	Clock   clock.Clock

	// GetCertificate, if it is set, gives the certificate of the time in place of Certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Certificate    tls.Certificate
	ClientCAs      *x509.CertPool
	ClientNames    []string
}

// Serve serves until ctx ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	return nodeserve.Serve(ctx, listener, &http.Server{Handler: s.Handler()}, nodeserve.Access{
		Certificate: s.certificate, ClientCAs: s.ClientCAs, ClientNames: s.ClientNames,
	})
}

func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.GetCertificate != nil {
		return s.GetCertificate(hello)
	}
	return &s.Certificate, nil
}

// Handler routes requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /metrics/resource", s.resourceMetrics)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	for _, path := range []string{"/exec/{namespace}/{pod}/{container}", "/exec/{namespace}/{pod}/{uid}/{container}"} {
		mux.HandleFunc(path, s.exec)
	}
	for _, path := range []string{"/attach/{namespace}/{pod}/{container}", "/attach/{namespace}/{pod}/{uid}/{container}"} {
		mux.HandleFunc(path, s.attach)
	}
	for _, path := range []string{"/portForward/{namespace}/{pod}", "/portForward/{namespace}/{pod}/{uid}"} {
		mux.HandleFunc(path, s.portForward)
	}
	return mux
}

func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	list := v1.PodList{}
	list.Kind, list.APIVersion = "PodList", "v1"
	for _, p := range s.Pods() {
		list.Items = append(list.Items, *p)
	}
	answer(w, list)
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(object); err != nil {
		// The client has gone: there is nobody to tell.
		return
	}
}

// pod finds the pod that the path names.
func (s *Server) pod(r *http.Request) *v1.Pod {
	for _, p := range s.Pods() {
		if p.Namespace == r.PathValue("namespace") && p.Name == r.PathValue("pod") && (r.PathValue("uid") == "" || r.PathValue("uid") == string(p.UID)) {
			return p
		}
	}
	return nil
}
