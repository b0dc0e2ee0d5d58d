package apiserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestNamespaceInPath: what cannot be the name of a namespace is the client's mistake, and is told as one.
func TestNamespaceInPath(t *testing.T) {
	a := startAPI(t)
	for path, want := range map[string]int{
		"/api/v1/namespaces/default/configmaps": http.StatusCreated, "/api/v1/namespaces/%2e%2e/configmaps": http.StatusBadRequest,
		"/api/v1/namespaces/a%2Fb/configmaps": http.StatusNotFound, "/api/v1/namespaces/a%25b/configmaps": http.StatusBadRequest, "/api/v1/namespaces/none/configmaps": http.StatusNotFound,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.config.Host+path, strings.NewReader(`{"metadata":{"name":"c"}}`))
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+a.config.BearerToken)
		request.Header.Set("Content-Type", "application/json")
		response, err := a.config.Transport.RoundTrip(request)
		must(t, err)
		text, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, response.StatusCode, text, want)
		}
		if want == http.StatusBadRequest && !strings.Contains(string(text), "cannot be the name of one") {
			t.Errorf("%s: %s", path, text)
		}
	}
}
