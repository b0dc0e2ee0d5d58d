package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestExplainArguments(t *testing.T) {
	for _, test := range []struct{ arg, output, pod, problem string }{
		{"pod/web", "table", "web", ""},
		{"pods/web", "json", "web", ""},
		{"web", "yaml", "web", ""},
		{"deployment/web", "table", "", "explains pods only"},
		{"pod/", "table", "", "explains pods only"},
		{"pod/web", "wide", "", "must be table, json or yaml"},
	} {
		o := &explainOptions{output: test.output}
		err := o.complete(test.arg)
		if test.problem != "" {
			if err == nil || !strings.Contains(err.Error(), test.problem) {
				t.Errorf("%s -o %s: error is %v, want %q", test.arg, test.output, err, test.problem)
			}
			continue
		}
		if err != nil || o.pod != test.pod {
			t.Errorf("%s -o %s: pod %q, error %v", test.arg, test.output, o.pod, err)
		}
	}
}

func TestExplainOutputs(t *testing.T) {
	const answer = `{"place":"active","attempts":2,"ahead":3}`
	for output, want := range map[string]string{
		"table": "Place:  active, attempts: 2, 3 pods are before it",
		"json":  "{\n  \"place\": \"active\",\n  \"attempts\": 2,\n  \"ahead\": 3\n}\n",
		"yaml":  "ahead: 3\nattempts: 2\nplace: active\n",
	} {
		var out bytes.Buffer
		o := &explainOptions{output: output, namespace: "default", pod: "web"}
		if err := o.print(&out, []byte(answer)); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("-o %s gives %q (%v), want %q", output, &out, err, want)
		}
	}
	if err := (&explainOptions{output: "table"}).print(&bytes.Buffer{}, []byte("<html>")); err == nil {
		t.Error("an answer that is no JSON is no error")
	}
}

// TestExplainErrors: what the server refuses is told in its words; that there is no such path, in ours.
func TestExplainErrors(t *testing.T) {
	for _, test := range []struct {
		code       int
		body, want string
	}{
		{http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"pods \"web\" not found","reason":"NotFound","details":{"name":"web","kind":"pods"},"code":404}`, `pods "web" not found`},
		{http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"forbidden: User \"ann\" cannot get path \"/scheduler/explain\"","reason":"Forbidden","code":403}`, `User "ann" cannot get path`},
		{http.StatusNotFound, "404 page not found\n", "no scheduler of Bayplan answers"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if strings.HasPrefix(test.body, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(test.code)
			_, _ = w.Write([]byte(test.body))
		}))
		o := &explainOptions{namespace: "default", pod: "web"}
		_, err := o.ask(t.Context(), kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL}))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d %s: error is %v, want %q", test.code, test.body, err, test.want)
		}
		server.Close()
	}
}
