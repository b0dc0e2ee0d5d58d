package apiserver_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// cacheTimeout is how long the watch cache may take to see a change.
const cacheTimeout = 10 * time.Second

func TestServiceAccountTokens(t *testing.T) {
	a := startAPI(t)
	accounts := a.client.CoreV1().ServiceAccounts("default")
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(t, err)
	pod := newPod("p")
	pod.Spec.ServiceAccountName = "robot"
	pod, err = a.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	ask := func(spec authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error) {
		return accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	}
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: pod.UID}
	issued, err := ask(authenticationv1.TokenRequestSpec{BoundObjectRef: bound})
	must(t, err)
	if issued.Status.Token == "" || *issued.Spec.ExpirationSeconds != 3600 || len(issued.Spec.Audiences) != 1 {
		t.Fatalf("token request: %+v", issued.Spec)
	}

	client := withToken(t, a, issued.Status.Token)
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		t.Fatalf("asking who one is: %v", err)
	}
	review := func(token string, audiences ...string) authenticationv1.TokenReviewStatus {
		r, err := a.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}, metav1.CreateOptions{})
		must(t, err)
		return r.Status
	}
	status := review(issued.Status.Token)
	if !status.Authenticated || status.User.Username != "system:serviceaccount:default:robot" || status.User.UID != string(account.UID) ||
		!slices.Contains(status.User.Groups, "system:serviceaccounts:default") || status.User.Extra["authentication.kubernetes.io/pod-name"][0] != "p" {
		t.Errorf("review: %+v", status)
	}
	if err == nil && self.Status.UserInfo.Username != status.User.Username {
		t.Errorf("one is %s", self.Status.UserInfo.Username)
	}
	if status := review(issued.Status.Token, "vault"); status.Authenticated || !strings.Contains(status.Error, "audiences") {
		t.Errorf("for another audience: %+v", status)
	}
	other, err := ask(authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	must(t, err)
	if status := review(other.Status.Token, "vault"); !status.Authenticated || !slices.Equal(status.Audiences, []string{"vault"}) {
		t.Errorf("for its audience: %+v", status)
	}
	if _, err := withToken(t, a, other.Status.Token).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for vault at the API server: %v", err)
	}
	forged := issued.Status.Token[:len(issued.Status.Token)-4] + "AAAA"
	if status := review(forged); status.Authenticated {
		t.Error("a forged signature was taken")
	}
	checkTokenRefusals(t, ask)
	// With the pod goes its token.
	must(t, a.client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	status = review(issued.Status.Token)
	for deadline := time.Now().Add(cacheTimeout); status.Authenticated && time.Now().Before(deadline); {
		// The server learns of the deletion by its watch.
		status = review(issued.Status.Token)
	}
	if status.Authenticated || !strings.Contains(status.Error, "invalidated") {
		t.Errorf("after the pod has gone: %+v", status)
	}
}

func checkTokenRefusals(t *testing.T, ask func(authenticationv1.TokenRequestSpec) (*authenticationv1.TokenRequest, error)) {
	if _, err := ask(authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](60)}); !apierrors.IsInvalid(err) {
		t.Errorf("a minute: %v", err)
	}
	for want, ref := range map[string]*authenticationv1.BoundObjectReference{
		"does not match the UID in record": {APIVersion: "v1", Kind: "Pod", Name: "p", UID: "x"},
		"not found":                        {APIVersion: "v1", Kind: "Secret", Name: "nothing"},
		"cannot bind token to object":      {APIVersion: "v1", Kind: "ConfigMap", Name: "p"},
	} {
		if _, err := ask(authenticationv1.TokenRequestSpec{BoundObjectRef: ref}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func withToken(t *testing.T, a *api, token string) kubernetes.Interface {
	config := rest.CopyConfig(a.config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

func TestAccessReviews(t *testing.T) {
	a := startAPI(t)
	question := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}
	self, err := a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: question}}, metav1.CreateOptions{})
	must(t, err)
	if !self.Status.Allowed {
		t.Errorf("a master may not get pods: %+v", self.Status)
	}
	for name, c := range map[string]struct {
		groups  []string
		allowed bool
	}{"nobody": {nil, false}, "master": {[]string{user.SystemPrivilegedGroup}, true}} {
		r, err := a.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: name, Groups: c.groups, ResourceAttributes: question}}, metav1.CreateOptions{})
		must(t, err)
		if r.Status.Allowed != c.allowed {
			t.Errorf("%s: %+v", name, r.Status)
		}
	}
	_, err = a.client.AuthorizationV1().LocalSubjectAccessReviews("kube-system").Create(t.Context(), &authorizationv1.LocalSubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: question}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a local review about another namespace: %v", err)
	}
	_, err = a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a review without a question: %v", err)
	}
	rules, err := a.client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
	must(t, err)
	if len(rules.Status.ResourceRules) == 0 && !rules.Status.Incomplete {
		t.Errorf("rules: %+v", rules.Status)
	}
}

// TestTwoVersions reads through one version what was written through another.
func TestTwoVersions(t *testing.T) {
	a := startAPI(t)
	old := &autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "h"}, Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{Kind: "Deployment", Name: "d"}, MaxReplicas: 3, TargetCPUUtilizationPercentage: ptr.To[int32](60),
	}}
	old, err := a.client.AutoscalingV1().HorizontalPodAutoscalers("default").Create(t.Context(), old, metav1.CreateOptions{})
	must(t, err)
	v2, err := a.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "h", metav1.GetOptions{})
	must(t, err)
	if v2.UID != old.UID || len(v2.Spec.Metrics) != 1 || *v2.Spec.Metrics[0].Resource.Target.AverageUtilization != 60 {
		t.Errorf("v2: %+v", v2.Spec)
	}
	_, err = a.client.EventsV1().Events("default").Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, EventTime: metav1.NowMicro(), ReportingController: "c", ReportingInstance: "i", Action: "A", Reason: "R", Type: "Normal",
		Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"}, Note: "hello",
	}, metav1.CreateOptions{})
	must(t, err)
	events, err := a.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=p"})
	must(t, err)
	if len(events.Items) != 1 || events.Items[0].Message != "hello" {
		t.Errorf("core events: %+v", events.Items)
	}
	regarding, err := a.client.EventsV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "regarding.name=p,reportingController=c"})
	must(t, err)
	if len(regarding.Items) != 1 || regarding.Items[0].Note != "hello" {
		t.Errorf("events: %+v", regarding.Items)
	}
}

func TestSigningRequestApproval(t *testing.T) {
	a := startAPI(t)
	k := &kindTest{t: t, api: a, kindCase: &kindCases[slices.IndexFunc(kindCases, func(c kindCase) bool { return strings.HasPrefix(c.resource, "certificatesigning") })]}
	k.found = &discoveredResource{APIResource: metav1.APIResource{Kind: "CertificateSigningRequest"}}
	k.gvr = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	k.resourceInterface()
	_, err := k.client.Create(t.Context(), k.manifest(), metav1.CreateOptions{})
	must(t, err)
	requests := a.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	approved := certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "R", Message: "m"}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{approved}
	request.Spec.Username = "forged"
	unapproved, err := requests.UpdateStatus(t.Context(), request, metav1.UpdateOptions{})
	must(t, err)
	if len(unapproved.Status.Conditions) != 0 {
		t.Errorf("approved through status: %+v", unapproved.Status)
	}
	request.ResourceVersion = unapproved.ResourceVersion
	decided, err := requests.UpdateApproval(t.Context(), "a", request, metav1.UpdateOptions{})
	must(t, err)
	if len(decided.Status.Conditions) != 1 || decided.Status.Conditions[0].LastTransitionTime.IsZero() || decided.Spec.Username != "tester" {
		t.Errorf("approval: %+v", decided)
	}
	decided.Status.Conditions = nil
	if _, err := requests.UpdateApproval(t.Context(), "a", decided, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("taking approval back: %v", err)
	}
}
