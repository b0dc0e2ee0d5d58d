package csrapproving

import (
	"crypto/x509"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/bayplan/bayplan/internal/controller/csr"
)

// kind is a kind of request that can be approved without a person.
type kind struct {
	// permission is the sub-resource of certificatesigningrequests that the requester must be allowed to create.
	permission string
	message    string
	is         func(r *certificatesv1.CertificateSigningRequest, asked *x509.CertificateRequest) bool
}

// kinds lists what is recognised, the most special first. Nodes may create selfnodeclient, holders of a bootstrap token nodeclient. A serving certificate of a node
// is for people to approve, as in Kubernetes: which names and addresses are the node's, nobody can tell but them.
func kinds() []kind {
	return []kind{
		{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.", isSelfNodeClient},
		{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.", isNodeClient},
	}
}

func isNodeClient(r *certificatesv1.CertificateSigningRequest, asked *x509.CertificateRequest) bool {
	return r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName && csr.NodeClient(asked, r.Spec.Usages) == nil
}

func isSelfNodeClient(r *certificatesv1.CertificateSigningRequest, asked *x509.CertificateRequest) bool {
	return r.Spec.Username == asked.Subject.CommonName && isNodeClient(r, asked)
}
