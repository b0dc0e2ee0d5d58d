package apiserver

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyInterval is how often the server asks itself whether it is ready, at start.
const readyInterval = 2 * time.Millisecond

// systemNamespaces are there in every cluster.
var systemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// awaitReady waits until /readyz says so; an error of the server itself ends the wait.
func (s *Server) awaitReady(ctx context.Context, ended chan error) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		if err := s.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return <-ended
		case <-ticker.C:
		}
	}
}
