package apiserver_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver"
	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// convert is a conversion webhook: v1 has a temperature in a text with its unit, v2 in two fields.
func convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw.Raw); err != nil {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
			break
		}
		spec := obj.Object["spec"].(map[string]any)
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v2") {
			degrees, unit, _ := strings.Cut(spec["temperature"].(string), " ")
			obj.Object["spec"] = map[string]any{"degrees": degrees, "unit": unit}
		} else {
			obj.Object["spec"] = map[string]any{"temperature": fmt.Sprintf("%s %s", spec["degrees"], spec["unit"])}
		}
		if spec["unit"] == "X" {
			review.Response.Result = metav1.Status{Status: metav1.StatusFailure, Message: "nobody knows the unit X"}
			break
		}
		obj.SetAPIVersion(review.Request.DesiredAPIVersion)
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Object: obj})
	}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// webhookAPI is an API with Service default/hook, behind which the handler serves at 10.1.0.2:8443, inside the cluster's network only.
func webhookAPI(t *testing.T, handler http.HandlerFunc) (*api, *pki.Authority) {
	authority, pair := hookIdentity(t)
	backend := httptest.NewUnstartedServer(handler)
	backend.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	backend.StartTLS()
	t.Cleanup(backend.Close)
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	a := startOn(t, s, authority, inside("10.1.0.2", backend))
	a.addHookService(t, "10.1.0.2")
	return a, authority
}

// hookIdentity is a new authority, and a certificate of Service default/hook by it.
func hookIdentity(t *testing.T) (*pki.Authority, tls.Certificate) {
	t.Helper()
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	identity, err := authority.Identity("hook", pki.Request{User: "hook", Names: []string{"hook.default.svc"}})
	must(t, err)
	pair, err := identity.TLS()
	must(t, err)
	return authority, pair
}

// inside lets the API server find the backend at that address of the cluster's network, port 8443, and nothing else.
func inside(address string, backend *httptest.Server) func(*apiserver.Config) {
	return func(config *apiserver.Config) {
		config.Dial = func(ctx context.Context, network, asked string) (net.Conn, error) {
			if asked != address+":8443" {
				return nil, fmt.Errorf("nothing is at %s", asked)
			}
			return (&net.Dialer{}).DialContext(ctx, network, backend.Listener.Addr().String())
		}
	}
}

// addHookService makes Service default/hook with one endpoint.
func (a *api) addHookService(t *testing.T, address string) {
	t.Helper()
	_, err := a.client.CoreV1().Services("default").Create(t.Context(), newService("hook", func(s *corev1.ServiceSpec) {
		s.Ports = []corev1.ServicePort{{Name: "https", Port: 443}}
	}), metav1.CreateOptions{})
	must(t, err)
	_, err = a.client.DiscoveryV1().EndpointSlices("default").Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hook-1", Labels: map[string]string{discoveryv1.LabelServiceName: "hook"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](8443)}},
	}, metav1.CreateOptions{})
	must(t, err)
}

const converted = `
metadata: {name: ovens.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: ovens, kind: Oven}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: hook, namespace: default, path: /convert}, caBundle: %s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {temperature: {type: string}}}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {degrees: {type: string}, unit: {type: string}}}}}}
`

func TestConversionByWebhook(t *testing.T) {
	a, authority := webhookAPI(t, convert)
	s := scriptOn(t, a)
	_, err := s.define(fmt.Sprintf(converted, base64.StdEncoding.EncodeToString(authority.CertPEM())))
	must(t, err)
	v1, v2 := s.client(resourceOf("ovens.v1.example.org")), s.client(resourceOf("ovens.v2.example.org"))
	oven := func(name, unit string) *unstructured.Unstructured {
		return s.parse(fmt.Sprintf("apiVersion: example.org/v2\nkind: Oven\nmetadata: {name: %s}\nspec: {degrees: \"200\", unit: %s}", name, unit))
	}
	watcher, err := v2.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To(int64(storeTimeout / time.Second))})
	must(t, err)
	defer watcher.Stop()

	created, err := v2.Create(t.Context(), oven("a", "C"), metav1.CreateOptions{})
	must(t, err)
	compare(t, "created", created.Object["spec"], map[string]any{"degrees": "200", "unit": "C"})
	stored, err := v1.Get(t.Context(), "a", metav1.GetOptions{})
	must(t, err)
	compare(t, "stored", stored.Object["spec"], map[string]any{"temperature": "200 C"})
	list, err := v2.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	compare(t, "listed", list.Items[0].Object["spec"], map[string]any{"degrees": "200", "unit": "C"})
	seen := (<-watcher.ResultChan()).Object.(*unstructured.Unstructured)
	compare(t, "watched", seen.Object["spec"], map[string]any{"degrees": "200", "unit": "C"})

	_, err = v2.Create(t.Context(), oven("b", "X"), metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "conversion webhook for example.org/v2, Kind=Oven failed: nobody knows the unit X") {
		t.Errorf("a refused conversion: %v", err)
	}
	must(t, a.client.DiscoveryV1().EndpointSlices("default").Delete(t.Context(), "hook-1", metav1.DeleteOptions{}))
	_, err = v2.Get(t.Context(), "a", metav1.GetOptions{})
	if err == nil || !strings.Contains(err.Error(), `no endpoints available for service "hook"`) {
		t.Errorf("a webhook without endpoints: %v", err)
	}
}
