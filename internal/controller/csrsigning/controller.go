// Package csrsigning signs approved CertificateSigningRequests of the signers kubernetes.io/kube-apiserver-client, kube-apiserver-client-kubelet,
// kubelet-serving and legacy-unknown, with the cluster's certificate authority.
//
// Request events lead to a sync of the request. A sync checks that what is asked for is what the signer gives (signers.go), makes the certificate
// (certificate.go) and writes it, or the reason why not, into the request's status.
package csrsigning

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/csr"
)

// Name is the controller's name in logs and metrics.
const Name = "certificatesigningrequest-signing-controller"

// Controller signs requests.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	clock     clock.PassiveClock
	authority controller.Authority
	requests  certificateslisters.CertificateSigningRequestLister
}

// New makes the controller. deps.Authority must be there.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	if deps.Authority == nil {
		return nil, errors.New("controller " + Name + ": no certificate authority was given to sign with")
	}
	requests := deps.Informers.Certificates().V1().CertificateSigningRequests()
	c := &Controller{client: deps.Client, clock: deps.Clock, authority: deps.Authority, requests: requests.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	changed := func(r *certificatesv1.CertificateSigningRequest) {
		if due(r) {
			c.AddObject(r)
		}
	}
	return c, c.Handle(requests.Informer(), controller.Handlers[*certificatesv1.CertificateSigningRequest]{
		Add: changed, Update: func(_, r *certificatesv1.CertificateSigningRequest) { changed(r) },
	})
}

// due tells whether the request waits for one of our signers.
func due(r *certificatesv1.CertificateSigningRequest) bool {
	_, ours := signers[r.Spec.SignerName]
	return ours && csr.Approved(r) && csr.Condition(r, certificatesv1.CertificateFailed) == nil && len(r.Status.Certificate) == 0
}

func (c *Controller) sync(ctx context.Context, name string) error {
	r, err := c.requests.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if !due(r) {
		return nil
	}
	r = r.DeepCopy()
	asked, err := csr.Parse(r)
	if err == nil {
		err = signers[r.Spec.SignerName](asked, r.Spec.Usages)
	}
	if err != nil {
		refuse(r, err)
	} else if r.Status.Certificate, err = c.certificate(r, asked); err != nil {
		return fmt.Errorf("sign CertificateSigningRequest %s: %w", name, err)
	}
	if _, err := c.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, r, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the answer to CertificateSigningRequest %s: %w", name, err)
	}
	return nil
}

func refuse(r *certificatesv1.CertificateSigningRequest, why error) {
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: why.Error(),
	})
}
