package cli

import (
	"bytes"
	"strings"
	"testing"
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
