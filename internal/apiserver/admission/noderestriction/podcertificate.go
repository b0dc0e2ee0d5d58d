package noderestriction

import (
	"context"
	"fmt"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// podCertificateRequest: a node asks for certificates of pods that run on it, from signers that they speak of. What may differ because something was made a moment ago is an error that
// passes, and no refusal.
func (w write) podCertificateRequest(ctx context.Context) error {
	switch {
	case w.GetOperation() != admission.Create:
		return w.unexpected()
	case w.GetSubresource() != "":
		return w.refuse("unexpected subresource %v", w.GetSubresource())
	}
	r, ok := w.GetObject().(*certificatesv1.PodCertificateRequest)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	if string(r.Spec.NodeName) != w.node {
		return w.refuse("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", r.Spec.NodeName, w.node)
	}
	pod := w.GetNamespace() + "/" + r.Spec.PodName
	uid, err := w.uid(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: %w", r.Spec.NodeName, err)
	case uid != r.Spec.NodeUID:
		return fmt.Errorf("PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)", pod, r.Spec.NodeUID, uid)
	}
	current, err := w.current(ctx, r.Spec.PodName)
	if err != nil {
		return fmt.Errorf("while retrieving pod %q named in the PodCertificateRequest: %w", pod, err)
	}
	if err := w.certifiedPod(r, current); err != nil {
		return err
	}
	account, err := w.client.CoreV1().ServiceAccounts(w.GetNamespace()).Get(ctx, r.Spec.ServiceAccountName, metav1.GetOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("while retrieving service account %q named in the PodCertificateRequest: %w", w.GetNamespace()+"/"+r.Spec.ServiceAccountName, err)
	case account.UID != r.Spec.ServiceAccountUID:
		return fmt.Errorf("PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)", pod, r.Spec.ServiceAccountUID, account.UID)
	}
	return w.signer(ctx, r, current)
}

func (w write) certifiedPod(r *certificatesv1.PodCertificateRequest, pod *corev1.Pod) error {
	name := pod.Namespace + "/" + pod.Name
	switch {
	case r.Spec.PodUID != pod.UID:
		return fmt.Errorf("PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q", name, r.Spec.PodUID, pod.UID)
	case pod.Spec.NodeName != w.node:
		return w.refuse("pod %q is not running on node %q named in the PodCertificateRequest", name, r.Spec.NodeName)
	case has(pod.Annotations, corev1.MirrorPodAnnotationKey):
		return w.refuse("pod %q is a mirror pod", name)
	case r.Spec.ServiceAccountName != pod.Spec.ServiceAccountName:
		return w.refuse("PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)", name, r.Spec.ServiceAccountName, pod.Spec.ServiceAccountName)
	}
	return nil
}

func (w write) signer(ctx context.Context, r *certificatesv1.PodCertificateRequest, pod *corev1.Pod) error {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Projected == nil {
			continue
		}
		for _, s := range pod.Spec.Volumes[i].Projected.Sources {
			if s.PodCertificate != nil && s.PodCertificate.SignerName == r.Spec.SignerName {
				return nil
			}
		}
	}
	// The name of a resource cannot have a slash.
	question := w.question("request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(r.Spec.SignerName, "/", ":"), r.Spec.ServiceAccountName)
	switch decision, _, err := w.authorizer().Authorize(ctx, question); {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return w.refuse("error authorizing %s to request podcertificaterequests for signer %q: %w", w.GetUserInfo().GetName(), r.Spec.SignerName, err)
	}
	return w.refuse("pod %q does not mount a podCertificate projected volume for signer %q", w.GetNamespace()+"/"+r.Spec.PodName, r.Spec.SignerName)
}
