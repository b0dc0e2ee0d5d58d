package apiserver_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// hook is a webhook server of a test. It answers by the path of the request and remembers what it was asked.
type hook struct {
	*httptest.Server
	answers map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	lock    sync.Mutex
	asked   []string
}

func startHook(t *testing.T, answers map[string]func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *hook {
	h := &hook{answers: answers}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := review.Request
	resource := request.Resource.Resource
	if request.SubResource != "" {
		resource += "/" + request.SubResource
	}
	asked := fmt.Sprintf("%s %s %s %s %s by %s", r.URL.Path, request.Operation, resource, request.Name, request.Kind.Kind, request.UserInfo.Username)
	if *request.DryRun {
		asked += " dry-run"
	}
	h.lock.Lock()
	h.asked = append(h.asked, asked)
	h.lock.Unlock()
	review.Response = h.answers[r.URL.Path](request)
	review.Response.UID = request.UID
	_ = json.NewEncoder(w).Encode(review)
}

// seen returns what was asked since it was last called.
func (h *hook) seen() []string {
	h.lock.Lock()
	defer h.lock.Unlock()
	defer func() { h.asked = nil }()
	return h.asked
}

// at is the client configuration of the webhook at a path of the server.
func (h *hook) at(path string) admissionregistrationv1.WebhookClientConfig {
	return admissionregistrationv1.WebhookClientConfig{
		URL:      ptr.To(h.URL + path),
		CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}),
	}
}

func admitAll(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// patchWith answers with a JSON patch.
func patchWith(patch string) func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	return func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch)}
	}
}

func validatingHook(name string, client admissionregistrationv1.WebhookClientConfig, resources ...string) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name, ClientConfig: client, SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: resources},
		}},
	}
}

func mutatingHook(name string, client admissionregistrationv1.WebhookClientConfig, resources ...string) admissionregistrationv1.MutatingWebhook {
	v := validatingHook(name, client, resources...)
	return admissionregistrationv1.MutatingWebhook{
		Name: v.Name, ClientConfig: v.ClientConfig, SideEffects: v.SideEffects, AdmissionReviewVersions: v.AdmissionReviewVersions, Rules: v.Rules,
	}
}

func (a *api) addValidating(t *testing.T, hooks ...admissionregistrationv1.ValidatingWebhook) {
	t.Helper()
	_, err := a.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hooks[0].Name}, Webhooks: hooks}, metav1.CreateOptions{})
	must(t, err)
}

func (a *api) addMutating(t *testing.T, hooks ...admissionregistrationv1.MutatingWebhook) {
	t.Helper()
	_, err := a.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(t.Context(),
		&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: hooks[0].Name}, Webhooks: hooks}, metav1.CreateOptions{})
	must(t, err)
}

// until repeats a dry run of the creation of a ConfigMap until what came of it is as wanted: configurations take effect a moment after they were made.
func (a *api) until(t *testing.T, object *corev1.ConfigMap, wanted func(*corev1.ConfigMap, error) bool) {
	t.Helper()
	untilDone(t, func() (bool, string) {
		made, err := a.client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return wanted(made, err), fmt.Sprint(made, err)
	})
}

// effectTimeout bounds the wait for a configuration to take effect.
const effectTimeout = 20 * time.Second

// untilDone repeats an attempt until it has come to what is wanted.
func untilDone(t *testing.T, attempt func() (done bool, got string)) {
	t.Helper()
	for begun := time.Now(); ; {
		done, got := attempt()
		if done {
			return
		}
		if time.Since(begun) > effectTimeout {
			t.Fatalf("no effect within %s; the last answer was %s", effectTimeout, got)
		}
	}
}

func refused(_ *corev1.ConfigMap, err error) bool { return err != nil }

func configMap(name string, labels ...string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		object.Labels[key] = value
	}
	return object
}

// warned keeps the warnings that a client gets.
type warned struct {
	lock  sync.Mutex
	texts []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warned) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	w.texts = append(w.texts, text)
}

func newClient(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	return client
}

// errorText is empty for no error.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func asStatus(err error, status *apierrors.APIStatus) bool { return errors.As(err, status) }
