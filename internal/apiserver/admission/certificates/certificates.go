// Package certificates are the admission plugins of the group certificates.k8s.io. Who approves, signs or vouches must be allowed to do so for the signer that the object names, and nobody gets
// the certificate of a master.
//
//	CertificateApproval            who approves or denies a CertificateSigningRequest holds the verb "approve" on its signer
//	CertificateSigning             who reports the outcome of a CertificateSigningRequest or PodCertificateRequest holds "sign"
//	ClusterTrustBundleAttest       who writes a ClusterTrustBundle of a signer holds "attest"
//	CertificateSubjectRestriction  a request to the signer of clients of the API does not name the group system:masters
//
// A verb on a signer is asked of the authorizer twice: for the signer's name (resource "signers" of the group), and for all names of its domain ("example.com/*").
package certificates

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/klog/v2"
)

// The plugins' names in Kubernetes.
const (
	Approval           = "CertificateApproval"
	Signing            = "CertificateSigning"
	Attest             = "ClusterTrustBundleAttest"
	SubjectRestriction = "CertificateSubjectRestriction"
)

// Plugin is one of the plugins.
type Plugin struct {
	*admission.Handler
	check func(context.Context, admission.Attributes) error
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	return p.check(ctx, a)
}

var _ admission.ValidationInterface = &Plugin{}

// New returns the plugin of one of the names. authorizer is there when requests come.
func New(name string, authorizer func() authorizer.UnconditionalAuthorizer) (admission.Interface, error) {
	s := signers{authorizer}
	switch name {
	case Approval:
		return &Plugin{admission.NewHandler(admission.Update), s.approval}, nil
	case Signing:
		return &Plugin{admission.NewHandler(admission.Update), s.signing}, nil
	case Attest:
		return &Plugin{admission.NewHandler(admission.Create, admission.Update), s.attest}, nil
	case SubjectRestriction:
		return &Plugin{admission.NewHandler(admission.Create), subject}, nil
	}
	return nil, fmt.Errorf("there is no admission plugin %q of certificates", name)
}

// signers tells who may do what for which signer.
type signers struct {
	authorizer func() authorizer.UnconditionalAuthorizer
}

// allow reports whether who asks may use the verb for the signer.
func (s signers) allow(ctx context.Context, a admission.Attributes, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := s.authorizer().Authorize(ctx, authorizer.AttributesRecord{
			User: a.GetUserInfo(), Verb: verb, Name: name, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers", ResourceRequest: true,
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Asking who may act for a signer", "user", a.GetUserInfo().GetName(), "verb", verb, "signer", name)
		}
		if decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}

// objects are the new and the old object of a write; an error tells that they are not what the resource says.
func objects[T any](a admission.Attributes) (obj, old *T, err error) {
	var ok bool
	if obj, ok = a.GetObject().(any).(*T); !ok {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("expected type %T, got: %T", obj, a.GetObject()))
	}
	if a.GetOperation() != admission.Update {
		return obj, nil, nil
	}
	if old, ok = a.GetOldObject().(any).(*T); !ok {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("expected type %T, got: %T", old, a.GetOldObject()))
	}
	return obj, old, nil
}

// is reports whether a write is of a resource of the group and of one of its sub-resources.
func is(a admission.Attributes, resource, sub string) bool {
	return a.GetResource().GroupResource() == certificatesv1.Resource(resource) && a.GetSubresource() == sub
}
