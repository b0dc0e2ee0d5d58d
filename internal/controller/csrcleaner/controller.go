// Package csrcleaner deletes CertificateSigningRequests that nobody needs any more: those that were answered a while ago, that waited too long, or whose
// certificate has ended. Request events lead to a sync of the request, which deletes it or asks for another sync when it is time.
package csrcleaner

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/csr"
)

// Name is the controller's name in logs and metrics.
const Name = "certificatesigningrequest-cleaner-controller"

// How long requests stay, as in Kubernetes.
const (
	answeredStay = time.Hour
	waitingStay  = 24 * time.Hour
)

// Controller deletes old requests.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	clock    clock.PassiveClock
	requests certificateslisters.CertificateSigningRequestLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	requests := deps.Informers.Certificates().V1().CertificateSigningRequests()
	c := &Controller{client: deps.Client, clock: deps.Clock, requests: requests.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	return c, c.Handle(requests.Informer(), controller.Handlers[*certificatesv1.CertificateSigningRequest]{
		Add:    func(r *certificatesv1.CertificateSigningRequest) { c.AddObject(r) },
		Update: func(_, r *certificatesv1.CertificateSigningRequest) { c.AddObject(r) },
	})
}

func (c *Controller) sync(ctx context.Context, name string) error {
	r, err := c.requests.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if left := until(r).Sub(c.clock.Now()); left > 0 {
		c.AddAfter(name, left)
		return nil
	}
	err = c.client.CertificatesV1().CertificateSigningRequests().Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion},
	})
	if controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete old CertificateSigningRequest %s: %w", name, err)
	}
	return nil
}

// until is when the request may go: the earliest of all times that apply.
func until(r *certificatesv1.CertificateSigningRequest) time.Time {
	issued := len(r.Status.Certificate) > 0
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, c := range r.Status.Conditions {
		since := c.LastUpdateTime
		if since.IsZero() {
			since = r.CreationTimestamp
		}
		switch {
		case c.Type == certificatesv1.CertificateApproved && !issued:
			earlier(since.Add(waitingStay))
		case c.Type == certificatesv1.CertificateApproved, c.Type == certificatesv1.CertificateDenied, c.Type == certificatesv1.CertificateFailed:
			earlier(since.Add(answeredStay))
		}
	}
	if !csr.Decided(r) && csr.Condition(r, certificatesv1.CertificateFailed) == nil {
		earlier(r.CreationTimestamp.Add(waitingStay))
	}
	if end, ok := ends(r.Status.Certificate); ok {
		earlier(end)
	}
	return at
}

// ends is when a certificate in PEM ends.
func ends(certificate []byte) (time.Time, bool) {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return time.Time{}, false
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return parsed.NotAfter, true
}
