package controller

import (
	"context"
	"crypto"
	"crypto/x509"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// Controller is one of the cluster's controllers.
type Controller interface {
	// Name is the controller's name in logs, metrics and leader election, for example "replicaset-controller".
	Name() string
	// Run works until ctx is done and returns when all of the controller's goroutines have ended. The informers of
	// Deps must be started by the caller, at any time.
	Run(ctx context.Context)
}

// Deps is what a controller is made of. The composition fills it once for all controllers.
type Deps struct {
	// Client, Metadata and Discovery speak to the API server.
	Client    kubernetes.Interface
	Metadata  metadata.Interface
	Discovery discovery.DiscoveryInterface
	// Informers is the factory that all controllers of the process share. A constructor asks it for what it needs; the
	// composition starts it when all constructors have returned.
	Informers informers.SharedInformerFactory
	// Clock tells the time; nil stands for the real one.
	Clock clock.WithTicker
	// Recorder gives the event recorder of a component ("replicaset-controller" and so on).
	Recorder func(component string) record.EventRecorder
	// RootCA is the PEM bundle that pods verify the API server with, published as the ConfigMap kube-root-ca.crt.
	RootCA []byte
	// Authority signs what CertificateSigningRequests ask for. Without one, nobody signs them.
	Authority Authority
	// Workers is how many keys a controller works on at the same time; 0 stands for DefaultWorkers.
	Workers int
}

// Authority is the cluster's certificate authority.
type Authority interface {
	// Sign makes a certificate for the key from the template, which says everything but the serial number, and returns it in PEM. The
	// certificate ends with the authority's own at the latest.
	Sign(template *x509.Certificate, key crypto.PublicKey) ([]byte, error)
}

// DefaultWorkers is the number of keys that one controller works on at the same time unless Deps says otherwise. It is what
// kube-controller-manager uses for its workload controllers.
const DefaultWorkers = 5

// WithDefaults fills what the caller left out.
func (d Deps) WithDefaults() Deps {
	if d.Clock == nil {
		d.Clock = clock.RealClock{}
	}
	if d.Workers == 0 {
		d.Workers = DefaultWorkers
	}
	return d
}
