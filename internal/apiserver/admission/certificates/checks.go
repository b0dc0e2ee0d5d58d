package certificates

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

const (
	signingRequests = "certificatesigningrequests"
	podRequests     = "podcertificaterequests"
	trustBundles    = "clustertrustbundles"
)

func (s signers) approval(ctx context.Context, a admission.Attributes) error {
	if !is(a, signingRequests, "approval") {
		return nil
	}
	_, old, err := objects[certificatesv1.CertificateSigningRequest](a)
	if err != nil {
		return err
	}
	if !s.allow(ctx, a, "approve", old.Spec.SignerName) {
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to approve requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// signing: a write of the status that changes nothing of the outcome, of labels for instance, is nobody's privilege.
func (s signers) signing(ctx context.Context, a admission.Attributes) error {
	switch {
	case is(a, podRequests, "status"):
		return s.podSigning(ctx, a)
	case !is(a, signingRequests, "status"):
		return nil
	}
	r, old, err := objects[certificatesv1.CertificateSigningRequest](a)
	if err != nil {
		return err
	}
	if bytes.Equal(r.Status.Certificate, old.Status.Certificate) && equality.Semantic.DeepEqual(r.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	if !s.allow(ctx, a, "sign", old.Spec.SignerName) {
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to sign requests with signerName %q", old.Spec.SignerName))
	}
	return nil
}

// podSigning answers as an invalid field, as Kubernetes does, which looks at it where it validates.
func (s signers) podSigning(ctx context.Context, a admission.Attributes) error {
	r, old, err := objects[certificatesv1.PodCertificateRequest](a)
	if err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(r.Status, old.Status) || s.allow(ctx, a, "sign", old.Spec.SignerName) {
		return nil
	}
	message := fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", a.GetUserInfo().GetName(), old.Spec.SignerName)
	return apierrors.NewInvalid(schema.GroupKind{Group: certificatesv1.GroupName, Kind: "PodCertificateRequest"}, old.Name,
		field.ErrorList{field.Forbidden(field.NewPath("spec", "signerName"), message)})
}

// attest: the signer of a bundle never changes, so that it is enough to look at the new object.
func (s signers) attest(ctx context.Context, a admission.Attributes) error {
	if !is(a, trustBundles, "") {
		return nil
	}
	bundle, old, err := objects[certificatesv1.ClusterTrustBundle](a)
	switch {
	case err != nil:
		return err
	case bundle.Spec.SignerName == "":
		return nil
	case old != nil && resource.OnlyForCollection(bundle, old):
		return nil
	case !s.allow(ctx, a, "attest", bundle.Spec.SignerName):
		return admission.NewForbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", bundle.Spec.SignerName))
	}
	return nil
}

// subject: members of system:masters pass all authorization, so that none of them comes from a request that somebody approved in passing.
func subject(_ context.Context, a admission.Attributes) error {
	if !is(a, signingRequests, "") {
		return nil
	}
	r, _, err := objects[certificatesv1.CertificateSigningRequest](a)
	if err != nil || r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return err
	}
	request, err := parse(r.Spec.Request)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("failed to parse CSR: %w", err))
	}
	if slices.Contains(request.Subject.Organization, user.SystemPrivilegedGroup) {
		return admission.NewForbidden(a, fmt.Errorf("use of %s signer with %s group is not allowed", r.Spec.SignerName, user.SystemPrivilegedGroup))
	}
	return nil
}

func parse(data []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
