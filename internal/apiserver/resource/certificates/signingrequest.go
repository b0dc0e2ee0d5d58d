package certificates

import (
	"context"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

type csr = certificatesv1.CertificateSigningRequest

func signingRequest() *resource.Kind[*csr] {
	return &resource.Kind[*csr]{
		Resource:      "certificatesigningrequests",
		ShortNames:    []string{"csr"},
		ClusterWide:   true,
		HasStatus:     true,
		New:           func() *csr { return &csr{} },
		NewList:       func() runtime.Object { return &certificatesv1.CertificateSigningRequestList{} },
		PrepareCreate: setRequestor,
		// What was asked for never changes: somebody may be deciding about it.
		PrepareUpdate: func(_ context.Context, r, old *csr) { r.Spec = old.Spec },
		PrepareStatus: func(_ context.Context, r, old *csr) {
			keepDecision(r, old)
			stamp(r.Status.Conditions, old.Status.Conditions)
		},
		Validate:       validateRequest,
		ValidateStatus: validateRequestStatus,
		Subs: map[string]resource.Sub[*csr]{"approval": {
			Prepare: func(_ context.Context, r, old *csr) {
				r.Spec, r.Status.Certificate = old.Spec, old.Status.Certificate
				stamp(r.Status.Conditions, old.Status.Conditions)
			},
			Validate: validateRequestStatus,
			Reset:    fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "certificate")),
		}},
		Fields: map[string]func(*csr) string{"spec.signerName": func(r *csr) string { return r.Spec.SignerName }},
		Columns: []resource.Column[*csr]{
			resource.Age[*csr](),
			{Name: "SignerName", Description: "Who is asked to sign.", Value: func(r *csr) any { return r.Spec.SignerName }},
			{Name: "Requestor", Description: "Who asks.", Value: func(r *csr) any { return r.Spec.Username }},
			{Name: "RequestedDuration", Description: "How long the certificate is wanted for.", Value: func(r *csr) any { return durationText(r) }},
			{Name: "Condition", Description: "What was decided and done.", Value: func(r *csr) any { return conditionText(r) }},
		},
	}
}

// setRequestor writes down who asks; what the client says about that does not count.
func setRequestor(ctx context.Context, r *csr) {
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
	u, ok := request.UserFrom(ctx)
	if !ok {
		return
	}
	r.Spec.Username, r.Spec.UID, r.Spec.Groups = u.GetName(), u.GetUID(), u.GetGroups()
	for key, values := range u.GetExtra() {
		if r.Spec.Extra == nil {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		r.Spec.Extra[key] = values
	}
}

func decides(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
}

// keepDecision: a signer reports, and does not approve or deny. What was decided stays where the signer left it in the list; one that added or removed decisions is
// given back those that there were, at the end.
func keepDecision(r, old *csr) {
	were := slices.DeleteFunc(slices.Clone(old.Status.Conditions), func(c certificatesv1.CertificateSigningRequestCondition) bool { return !decides(c) })
	conditions := slices.Clone(r.Status.Conditions)
	kept := 0
	for i, c := range conditions {
		if decides(c) && kept < len(were) && were[kept].Type == c.Type {
			conditions[i] = were[kept]
			kept++
		}
	}
	if kept != len(were) || kept != countDecisions(conditions) {
		conditions = append(slices.DeleteFunc(conditions, decides), were...)
	}
	r.Status.Conditions = conditions
}

func countDecisions(conditions []certificatesv1.CertificateSigningRequestCondition) int {
	n := 0
	for _, c := range conditions {
		if decides(c) {
			n++
		}
	}
	return n
}

// stamp fills in the times of conditions that are new or have changed.
func stamp(conditions, old []certificatesv1.CertificateSigningRequestCondition) {
	now := metav1.Now()
	for i := range conditions {
		c := &conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, was := range old {
			if was.Type == c.Type && was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
}

func durationText(r *csr) string {
	if r.Spec.ExpirationSeconds == nil {
		return resource.None
	}
	return duration.HumanDuration(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
}

func conditionText(r *csr) string {
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(r.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == kind && c.Status != corev1.ConditionFalse
		})
	}
	var parts []string
	switch {
	case has(certificatesv1.CertificateDenied):
		parts = append(parts, "Denied")
	case has(certificatesv1.CertificateApproved):
		parts = append(parts, "Approved")
	default:
		parts = append(parts, "Pending")
	}
	if has(certificatesv1.CertificateFailed) {
		parts = append(parts, "Failed")
	}
	if len(r.Status.Certificate) > 0 {
		parts = append(parts, "Issued")
	}
	return strings.Join(parts, ",")
}
