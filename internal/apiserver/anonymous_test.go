package apiserver_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/bayplan/bayplan/internal/apiserver"
)

// healthPaths are what a stranger may ask for.
var healthPaths = []string{"/livez", "/readyz", "/healthz"}

// TestAnonymous asks for everything that there is, with no identity: health is told, and nothing else, also not what system:public-info-viewer would allow.
func TestAnonymous(t *testing.T) {
	a := startAPI(t, func(c *apiserver.Config) { c.Flags = map[string]string{"port": "1"} })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	ask := func(method, path string, want int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, a.config.Host+path, strings.NewReader("{}"))
		must(t, err)
		response, err := client.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != want {
			t.Errorf("%s %s: %d, want %d", method, path, response.StatusCode, want)
		}
	}
	paths := a.paths(t)
	for _, path := range paths {
		want := http.StatusUnauthorized
		if slices.Contains(healthPaths, path) {
			want = http.StatusOK
		}
		ask(http.MethodGet, path, want)
	}
	for _, path := range healthPaths {
		if !slices.Contains(paths, path) {
			t.Errorf("%s is not listed", path)
		}
		ask(http.MethodGet, path+"?verbose", http.StatusOK)
		ask(http.MethodPost, path, http.StatusForbidden)
		ask(http.MethodGet, path+"/", http.StatusUnauthorized)
		ask(http.MethodGet, path+"/../api", http.StatusUnauthorized)
	}
	ask(http.MethodPost, "/apis/authentication.k8s.io/v1/selfsubjectreviews", http.StatusUnauthorized)
	ask(http.MethodGet, "/api/v1/namespaces/kube-public/configmaps/cluster-info", http.StatusUnauthorized)
}

// paths are all that the server lists of itself, and the collections of all resources.
func (a *api) paths(t *testing.T) []string {
	t.Helper()
	var root struct{ Paths []string }
	must(t, json.Unmarshal([]byte(a.get(t, "/")), &root))
	if len(root.Paths) < 50 {
		t.Fatalf("the server lists %d paths", len(root.Paths))
	}
	_, lists, err := a.client.Discovery().ServerGroupsAndResources()
	must(t, err)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				root.Paths = append(root.Paths, collectionPath(gv, r.Name, r.Namespaced))
			}
		}
	}
	return append(root.Paths, "/openapi/v3/api/v1", "/openid/v1/jwks", "/.well-known/openid-configuration", "/debug/pprof/", "/none")
}

// collectionPath is where the objects of a resource are, those of the namespace default.
func collectionPath(gv schema.GroupVersion, resource string, namespaced bool) string {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if namespaced {
		path += "/namespaces/default"
	}
	return path + "/" + resource
}

// get asks for a path as administrator.
func (a *api) get(t *testing.T, path string) string {
	t.Helper()
	body, err := a.client.Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Raw()
	must(t, err)
	return string(body)
}

// TestFlagz: who watches over the cluster is told the flags of the process; others are not.
func TestFlagz(t *testing.T) {
	a := startAPI(t, func(c *apiserver.Config) { c.Flags = map[string]string{"data-dir": "/data", "port": "6443"} })
	status := func(name string, groups ...string) (int, string) {
		t.Helper()
		config := a.server.ClientConfig(&user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)})
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/flagz", nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+config.BearerToken)
		request.Header.Set("Accept", "text/plain")
		response, err := config.Transport.RoundTrip(request)
		must(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must(t, err)
		return response.StatusCode, string(text)
	}
	// Between a name and its value stands one of several marks.
	told := regexp.MustCompile(`(?s)\ndata-dir\W{1,2}/data\n.*port\W{1,2}6443\n`)
	if code, text := status("watcher", user.MonitoringGroup); code != http.StatusOK || !told.MatchString(text) {
		t.Errorf("for the group of monitoring: %d %s", code, text)
	}
	if code, text := status("ann"); code != http.StatusForbidden {
		t.Errorf("for others: %d %s", code, text)
	}
}
