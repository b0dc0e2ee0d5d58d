package noderestriction

import (
	"crypto/x509"
	"encoding/pem"
	"errors"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apiserver/pkg/admission"

	"github.com/bayplan/bayplan/internal/apiserver/authorization/node"
)

func (w write) lease() error {
	switch {
	case w.GetNamespace() != corev1.NamespaceNodeLease:
		return w.refuse("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	case w.objectName() != w.node:
		return w.refuse("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func (w write) csiNode() error {
	if w.objectName() != w.node {
		return w.refuse("can only access CSINode with the same name as the requesting node")
	}
	return nil
}

// resourceSlice looks at what is created, and at each object of a deletion of many; the rest is authorized by name.
func (w write) resourceSlice() error {
	check := func(obj runtime.Object, verb string) error {
		slice, ok := obj.(*resourcev1.ResourceSlice)
		switch {
		case !ok:
			return w.refuse("unexpected type %T", obj)
		case slice.Spec.NodeName == nil || *slice.Spec.NodeName != w.node:
			return w.refuse("can only %s ResourceSlice with the same NodeName as the requesting node", verb)
		}
		return nil
	}
	switch w.GetOperation() {
	case admission.Create:
		return check(w.GetObject(), "create")
	case admission.Delete:
		return check(w.GetOldObject(), "delete")
	}
	return nil
}

// claim: a node reports how far the growth of a volume has come.
func (w write) claim() error {
	switch {
	case w.GetSubresource() != "status":
		return w.refuse("may only update PVC status")
	case w.GetOperation() != admission.Update:
		return w.unexpected()
	}
	old, ok := w.GetOldObject().(*corev1.PersistentVolumeClaim)
	if !ok {
		return w.refuse("unexpected type %T", w.GetOldObject())
	}
	claim, ok := w.GetObject().(*corev1.PersistentVolumeClaim)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	old, claim = old.DeepCopy(), claim.DeepCopy()
	for _, c := range []*corev1.PersistentVolumeClaim{old, claim} {
		c.ResourceVersion, c.ManagedFields = "", nil
		c.Status.Capacity, c.Status.Conditions, c.Status.AllocatedResources, c.Status.AllocatedResourceStatuses = nil, nil, nil, nil
	}
	if !equality.Semantic.DeepEqual(old, claim) {
		return w.refuse("node %q is not allowed to update fields other than status.quantity and status.conditions: %v", w.node, diff.Diff(old, claim))
	}
	return nil
}

// signingRequest: a node asks for certificates of its own name.
func (w write) signingRequest() error {
	if w.GetOperation() != admission.Create {
		return nil
	}
	csr, ok := w.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	if csr.Spec.SignerName != certificatesv1.KubeletServingSignerName && csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return nil
	}
	request, err := parse(csr.Spec.Request)
	if err != nil {
		return w.refuse("unable to parse csr: %w", err)
	}
	if name := node.UserPrefix + w.node; request.Subject.CommonName != name {
		return w.refuse("can only create a node CSR with CN=%s", name)
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
