// Package nodeapi answers for the node API of all simulated nodes: what the API server asks nodes for on behalf of kubectl and others.
//
//	API server ─► Network.Around (the dialed address is a node's) ─► Server ─► Source: the fleet
//
//	GET /healthz
//	GET /pods                                         the pods of the node
//	GET /containerLogs/{namespace}/{pod}/{container}  logs, with the options of v1.PodLogOptions as the query
//	GET /stats/summary                                what pods use
//	GET /metrics/resource                             the same for Prometheus
//
// Streams (exec, attach, port-forward) are refused: no process stands behind a simulated container.
package nodeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/fleet/life"
	"github.com/bayplan/bayplan/internal/nodeserve"
)

// Source is what the server asks about nodes. It is asked by several goroutines at once.
type Source interface {
	// NodeAt is the name of the node with an address, empty when there is none.
	NodeAt(address string) string
	// Reaches reports whether there is a node with that address that can be reached.
	Reaches(address string) bool
	// PodsOf are the pods of a node, and UsageOf what they use.
	PodsOf(node string) []*corev1.Pod
	UsageOf(node string) []PodUsage
	// LogOf is what a container wrote, or an error that says why there is nothing.
	LogOf(node, namespace, pod, container string, previous bool) (life.Log, error)
}

// PodUsage is what the containers of a pod use.
type PodUsage struct {
	Pod        *corev1.Pod
	Containers []life.ContainerUsage
}

// Server answers for all nodes. All fields have to be set.
type Server struct {
	Source  Source
	Network *Network
	Clock   clock.Clock
	// Certificate is what the node with an address shows.
	Certificate func(address netip.Addr) (*tls.Certificate, error)
	// ClientCAs and ClientNames say who may ask: holders of a certificate by one of these authorities with one of these common names.
	ClientCAs   *x509.CertPool
	ClientNames []string
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error { return s.serve(ctx, s.listen()) }

func (s *Server) listen() net.Listener { return s.Network.Listen(s.Source.Reaches) }

func (s *Server) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.Handler(),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, addressKey{}, addressOf(c))
		},
	}
	return nodeserve.Serve(ctx, listener, server, nodeserve.Access{
		Certificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.Certificate(addressOf(hello.Conn))
		},
		ClientCAs: s.ClientCAs, ClientNames: s.ClientNames,
	})
}

// addressKey is the key of the address that was dialed, in the context of a request.
type addressKey struct{}

// addressOf is the address of the node that a connection was made to.
func addressOf(c net.Conn) netip.Addr {
	if tcp, ok := c.LocalAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// Handler routes requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /metrics/resource", s.metrics)
	for _, stream := range []string{"exec", "attach", "portForward", "run"} {
		mux.HandleFunc("/"+stream+"/", func(w http.ResponseWriter, r *http.Request) {
			message := fmt.Sprintf("node %s is simulated: nothing runs in its containers, so %s is not possible", s.node(r), stream)
			http.Error(w, message, http.StatusNotImplemented)
		})
	}
	return mux
}

// node is the name of the node that a request is for.
func (s *Server) node(r *http.Request) string {
	address, _ := r.Context().Value(addressKey{}).(netip.Addr)
	return s.Source.NodeAt(address.String())
}

func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	list := corev1.PodList{}
	list.Kind, list.APIVersion = "PodList", "v1"
	for _, p := range s.Source.PodsOf(s.node(r)) {
		list.Items = append(list.Items, *p)
	}
	answer(w, list)
}

func answer(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object) // a client that has gone cannot be told
}
