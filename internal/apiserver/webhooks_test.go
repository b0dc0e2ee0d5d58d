package apiserver_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/store"
)

// TestValidatingWebhook follows an object and a connection through all operations.
func TestValidatingWebhook(t *testing.T) {
	h := startHook(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/check": func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			answer := &admissionv1.AdmissionResponse{Allowed: r.Name != "bad", Warnings: []string{"looked at " + r.Name}}
			if !answer.Allowed {
				answer.Result = &metav1.Status{Message: "bad is bad", Code: http.StatusTeapot, Reason: "Teapot"}
			}
			return answer
		},
	})
	a := startAPI(t)
	warnings := &warned{}
	config := rest.CopyConfig(a.config)
	config.WarningHandlerWithContext = warnings
	warnedClient := newClient(t, config)
	a.addValidating(t, validatingHook("check.example.com", h.at("/check"), "configmaps", "pods/*", "subjectaccessreviews", "validatingwebhookconfigurations"))
	a.until(t, configMap("bad"), refused)
	h.seen()

	ctx, maps := t.Context(), warnedClient.CoreV1().ConfigMaps("default")
	_, err := maps.Create(ctx, configMap("bad"), metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) && (err == nil || err.Error() != `admission webhook "check.example.com" denied the request: bad is bad`) {
		t.Errorf("create of what the webhook refuses: %v", err)
	}
	if status := apierrors.APIStatus(nil); err != nil && asStatus(err, &status) && (status.Status().Code != http.StatusTeapot || status.Status().Reason != "Teapot") {
		t.Errorf("the status is %+v, want code and reason of the webhook", status.Status())
	}
	made, err := maps.Create(ctx, configMap("good"), metav1.CreateOptions{})
	must(t, err)
	made.Labels = map[string]string{"a": "b"}
	_, err = maps.Update(ctx, made, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	must(t, err)
	must(t, maps.Delete(ctx, "good", metav1.DeleteOptions{}))
	_, err = a.client.CoreV1().Pods("default").Create(ctx, newPod("p"), metav1.CreateOptions{})
	must(t, err)
	// The pod runs nowhere: what counts is that the webhook was asked before that was found out.
	err = a.client.CoreV1().RESTClient().Post().RequestURI("/api/v1/namespaces/default/pods/p/exec?stdout=1&command=ls").Do(ctx).Error()
	if err == nil || !strings.Contains(err.Error(), "does not have a host assigned") {
		t.Errorf("exec: %v", err)
	}
	// A question is not for webhooks, nor are their own configurations.
	_, err = a.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
	}}, metav1.CreateOptions{})
	must(t, err)
	must(t, a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "check.example.com", metav1.DeleteOptions{}))

	want := []string{
		"/check CREATE configmaps bad ConfigMap by tester",
		"/check CREATE configmaps good ConfigMap by tester",
		"/check UPDATE configmaps good ConfigMap by tester dry-run",
		"/check DELETE configmaps good ConfigMap by tester",
		"/check CREATE pods p Pod by tester",
		"/check CONNECT pods/exec p PodExecOptions by tester",
	}
	if got := h.seen(); !slices.Equal(got, want) {
		t.Errorf("the webhook was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if want := []string{"looked at bad", "looked at good", "looked at good", "looked at good"}; !slices.Equal(warnings.texts, want) {
		t.Errorf("warnings are %q, want %q", warnings.texts, want)
	}
}

// TestMutatingWebhook has webhooks that change objects, one after the other, and one that wants to see what the others made of them.
func TestMutatingWebhook(t *testing.T) {
	h := startHook(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/first":  patchWith(`[{"op":"add","path":"/metadata/labels/first","value":"1"}]`),
		"/second": patchWith(`[{"op":"add","path":"/metadata/labels/second","value":"2"},{"op":"add","path":"/data","value":{"k":"v"}}]`),
		"/port":   patchWith(`[{"op":"add","path":"/spec/containers/0/ports","value":[{"containerPort":80}]}]`),
		"/wrong":  patchWith(`[{"op":"remove","path":"/metadata/labels/none"}]`),
		"/other":  admitAll,
	})
	a := startAPI(t)
	first, second := mutatingHook("a.example.com", h.at("/first"), "configmaps"), mutatingHook("b.example.com", h.at("/second"), "configmaps")
	first.ReinvocationPolicy = ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy)
	wrong := mutatingHook("c.example.com", h.at("/wrong"), "configmaps")
	wrong.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"wrong": "yes"}}
	a.addMutating(t, first, second, mutatingHook("d.example.com", h.at("/port"), "pods"), wrong)
	a.until(t, configMap("x", "a=b"), func(made *corev1.ConfigMap, _ error) bool { return made.Labels["second"] == "2" })
	h.seen()

	made, err := a.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("x", "a=b"), metav1.CreateOptions{})
	must(t, err)
	if made.Labels["first"] != "1" || made.Labels["second"] != "2" || made.Data["k"] != "v" {
		t.Errorf("the webhooks made %v, %v", made.Labels, made.Data)
	}
	want := []string{"/first CREATE configmaps x ConfigMap by tester", "/second CREATE configmaps x ConfigMap by tester", "/first CREATE configmaps x ConfigMap by tester"}
	if got := h.seen(); !slices.Equal(got, want) {
		t.Errorf("the webhooks were asked %q, want %q", got, want)
	}
	// What a webhook adds gets its defaults.
	pod, err := a.client.CoreV1().Pods("default").Create(t.Context(), newPod("p"), metav1.CreateOptions{})
	must(t, err)
	if ports := pod.Spec.Containers[0].Ports; len(ports) != 1 || ports[0].Protocol != corev1.ProtocolTCP {
		t.Errorf("the pod has the ports %+v", ports)
	}
	_, err = a.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("y", "wrong=yes"), metav1.CreateOptions{})
	if !apierrors.IsInternalError(err) {
		t.Errorf("a patch that does not apply: %v, want an internal error", err)
	}
}

// TestWebhookMatch has a webhook for each way to say what it is for; each refuses.
func TestWebhookMatch(t *testing.T) {
	h := startHook(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{}
		},
	})
	a := startAPI(t)
	_, err := a.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched", Labels: map[string]string{"watched": "yes"}}}, metav1.CreateOptions{})
	must(t, err)
	byNamespace, byCondition, broken := validatingHook("a.example.com", h.at("/"), "configmaps"), validatingHook("b.example.com", h.at("/"), "configmaps"), validatingHook("c.example.com", h.at("/"), "secrets")
	byNamespace.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"watched": "yes"}}
	byCondition.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "long", Expression: `object.metadata.name.size() > 5 && request.userInfo.username == "tester"`}}
	broken.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "none", Expression: `object.data["none"] == "x"`}}
	a.addValidating(t, byNamespace, byCondition, broken)
	a.until(t, configMap("too-long"), refused)
	for _, test := range []struct{ namespace, name, want string }{
		{"default", "short", ""},
		{"watched", "short", `admission webhook "a.example.com" denied the request without explanation`},
		{"default", "too-long", `admission webhook "b.example.com" denied the request without explanation`},
	} {
		_, err := a.client.CoreV1().ConfigMaps(test.namespace).Create(t.Context(), configMap(test.name), metav1.CreateOptions{})
		if got := errorText(err); got != test.want {
			t.Errorf("%s in %s: %q, want %q", test.name, test.namespace, got, test.want)
		}
	}
	_, err = a.client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	if want := `secrets "s" is forbidden: expression 'object.data["none"] == "x"' resulted in error: no such key: data`; errorText(err) != want {
		t.Errorf("a condition that fails: %q, want %q", errorText(err), want)
	}
}

func TestWebhookFailure(t *testing.T) {
	hang := make(chan struct{})
	h := startHook(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/hang": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			<-hang
			return &admissionv1.AdmissionResponse{}
		},
	})
	t.Cleanup(func() { close(hang) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := "https://" + listener.Addr().String() + "/"
	must(t, listener.Close())
	a := startAPI(t)
	gone, ignored := validatingHook("a.example.com", admissionregistrationv1.WebhookClientConfig{URL: &nobody}, "configmaps"), validatingHook("b.example.com", admissionregistrationv1.WebhookClientConfig{URL: &nobody}, "secrets")
	ignored.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	slow := validatingHook("c.example.com", h.at("/hang"), "serviceaccounts")
	slow.TimeoutSeconds = ptr.To[int32](1)
	noService := validatingHook("d.example.com", admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "none", Path: ptr.To("/x")},
	}, "podtemplates")
	a.addValidating(t, gone, ignored, slow, noService)
	a.until(t, configMap("x"), refused)
	ctx := t.Context()
	_, err = a.client.CoreV1().ConfigMaps("default").Create(ctx, configMap("x"), metav1.CreateOptions{})
	if want := fmt.Sprintf(`Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "%s?timeout=10s": dial tcp %s: connect: connection refused`, nobody, listener.Addr()); errorText(err) != want {
		t.Errorf("nobody listens: %q, want %q", errorText(err), want)
	}
	_, err = a.client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("nobody listens, and that is to be ignored: %v", err)
	}
	_, err = a.client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	if want := fmt.Sprintf(`Internal error occurred: failed calling webhook "c.example.com": failed to call webhook: Post "%s/hang?timeout=1s": context deadline exceeded`, h.URL); errorText(err) != want {
		t.Errorf("no answer: %q, want %q", errorText(err), want)
	}
	_, err = a.client.CoreV1().PodTemplates("default").Create(ctx, &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}, Template: corev1.PodTemplateSpec{Spec: newPod("p").Spec}}, metav1.CreateOptions{})
	if want := `Internal error occurred: failed calling webhook "d.example.com": failed to call webhook: Post "https://none.default.svc:443/x?timeout=10s": services "none" not found`; errorText(err) != want {
		t.Errorf("no such service: %q, want %q", errorText(err), want)
	}
}

// TestWebhookService has a webhook that is a service of the cluster, and a server that is started again: its first request is refused already.
func TestWebhookService(t *testing.T) {
	h := startHook(t, map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse{
		"/deny": func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
			return &admissionv1.AdmissionResponse{}
		},
	})
	authority, pair := hookIdentity(t)
	h.TLS.Certificates = []tls.Certificate{pair}
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	at := inside("10.1.0.7", h.Server)
	a := startOn(t, s, authority, at)
	a.addHookService(t, "10.1.0.7")
	a.addValidating(t, validatingHook("deny.example.com", admissionregistrationv1.WebhookClientConfig{
		CABundle: authority.CertPEM(),
		Service:  &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "hook", Path: ptr.To("/deny")},
	}, "configmaps"))
	a.until(t, configMap("x"), refused)
	for _, server := range []*api{a, startOn(t, s, authority, at)} {
		_, err = server.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("x"), metav1.CreateOptions{})
		if want := `admission webhook "deny.example.com" denied the request without explanation`; errorText(err) != want {
			t.Errorf("create: %q, want %q", errorText(err), want)
		}
	}
}

// TestNotYet: objects that nothing acts on are stored with a warning.
func TestNotYet(t *testing.T) {
	a, warnings := startAPI(t), &warned{}
	config := rest.CopyConfig(a.config)
	config.WarningHandlerWithContext = warnings
	_, err := newClient(t, config).NetworkingV1().NetworkPolicies("default").Create(t.Context(), &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, metav1.CreateOptions{})
	must(t, err)
	if len(warnings.texts) != 1 || !strings.HasPrefix(warnings.texts[0], `NetworkPolicy "n" is stored, but nothing acts on it yet: `) {
		t.Errorf("warnings are %q", warnings.texts)
	}
}
