// Package csrapproving approves the CertificateSigningRequests by which nodes get their certificates, if the requester may ask for them.
//
// Request events lead to a sync of the request. A sync recognises the kinds of request in recognise.go by what they ask for, and asks by a
// SubjectAccessReview whether the requester may have that kind: the question is one of authorization, so that roles answer it. What is not
// recognised or not allowed is left to people.
package csrapproving

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/csr"
)

// Name is the controller's name in logs and metrics.
const Name = "certificatesigningrequest-approving-controller"

// Controller approves requests of nodes.
type Controller struct {
	*controller.Loop
	client   kubernetes.Interface
	requests certificateslisters.CertificateSigningRequestLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	requests := deps.Informers.Certificates().V1().CertificateSigningRequests()
	c := &Controller{client: deps.Client, requests: requests.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	changed := func(r *certificatesv1.CertificateSigningRequest) {
		if !csr.Decided(r) {
			c.AddObject(r)
		}
	}
	return c, c.Handle(requests.Informer(), controller.Handlers[*certificatesv1.CertificateSigningRequest]{
		Add: changed, Update: func(_, r *certificatesv1.CertificateSigningRequest) { changed(r) },
	})
}

func (c *Controller) sync(ctx context.Context, name string) error {
	r, err := c.requests.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if csr.Decided(r) || len(r.Status.Certificate) > 0 {
		return nil
	}
	asked, err := csr.Parse(r)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Request cannot be read", "request", name, "reason", err.Error())
		return nil // no later sync can read it either: what is asked for never changes
	}
	var tried []string
	for _, kind := range kinds() {
		if !kind.is(r, asked) {
			continue
		}
		allowed, err := c.allowed(ctx, r, kind)
		if err != nil {
			return err
		}
		if !allowed {
			tried = append(tried, kind.permission)
			continue
		}
		return c.approve(ctx, r, kind.message)
	}
	if len(tried) > 0 {
		// A role may be given later, without any event of the request.
		return controller.Again(fmt.Sprintf("CertificateSigningRequest %s is one of %v, which user %q may not create", name, tried, r.Spec.Username))
	}
	return nil
}

// allowed asks whether the requester may create the sub-resource that stands for a kind of request.
func (c *Controller) allowed(ctx context.Context, r *certificatesv1.CertificateSigningRequest, k kind) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range r.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: r.Spec.Username, UID: r.Spec.UID, Groups: r.Spec.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Resource: "certificatesigningrequests", Subresource: k.permission, Verb: "create", Version: "*",
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask whether user %q may create certificatesigningrequests/%s: %w", r.Spec.Username, k.permission, err)
	}
	return review.Status.Allowed, nil
}

func (c *Controller) approve(ctx context.Context, r *certificatesv1.CertificateSigningRequest, message string) error {
	r = r.DeepCopy()
	r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	})
	if _, err := c.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, r.Name, r, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("approve CertificateSigningRequest %s: %w", r.Name, err)
	}
	return nil
}
