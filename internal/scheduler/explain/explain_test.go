package explain

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/cycle"
	"github.com/bayplan/bayplan/internal/scheduler/plugins"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

var golden = flag.Bool("golden", false, "rewrite testdata with what comes out")

var start = time.Unix(1e9, 0)

// owner is a scheduler's core that answers at once.
type owner struct {
	*core.Core
	asked cycle.RecordOptions
	err   error
}

func (o *owner) Explain(_ context.Context, pod *v1.Pod, options cycle.RecordOptions) (*core.Explanation, error) {
	o.asked = options
	return o.Core.Explain(pod, options), o.err
}

// serve makes a handler over three nodes, a pod that fits nowhere and one that has a node.
func serve(t *testing.T) (*Handler, *owner) {
	o := &owner{Core: core.New(core.Config{Profiles: []core.Profile{{SchedulerName: v1.DefaultSchedulerName, Plugins: plugins.Default()}}})}
	for name, words := range map[string]string{"n1": "cpu=4", "n2": "cpu=2", "n3": "cpu=8 taint=special:NoSchedule"} {
		o.SetNode(transcript.Node(t, name, strings.Fields(words)...), start)
	}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: namespaced})
	for name, words := range map[string]string{"big": "cpu=6", "small": "cpu=1 on=n1"} {
		pod := transcript.Pod(t, name, strings.Fields(words)...)
		o.SetPod(pod, start)
		if err := pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	o.Next(start.Add(time.Second))
	return &Handler{Scheduler: o, Pods: listers.NewPodLister(pods)}, o
}

func namespaced(object any) ([]string, error) {
	accessor, err := meta.Accessor(object)
	return []string{accessor.GetNamespace()}, err
}

func get(h *Handler, query string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path+"?"+query, nil))
	return w
}

func TestText(t *testing.T) {
	h, _ := serve(t)
	var out strings.Builder
	for _, query := range []struct{ pod, node string }{{"big", ""}, {"big", "n3"}, {"small", "n2"}, {"small", "n9"}} {
		answer := get(h, "namespace=default&pod="+query.pod+"&node="+query.node)
		x := &core.Explanation{}
		if err := json.Unmarshal(answer.Body.Bytes(), x); err != nil {
			t.Fatalf("%s: %v", answer.Body, err)
		}
		out.WriteString("# pod/" + query.pod + " " + query.node + "\n")
		if err := Text(&out, "default", query.pod, x, start.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	const file = "testdata/text.txt"
	if *golden {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("%s holds something else than (-golden rewrites it):\n%s", file, &out)
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		query string
		code  int
		body  string
	}{
		{"namespace=default&pod=big", http.StatusOK, `"place":"unschedulable"`},
		{"namespace=default&pod=none", http.StatusNotFound, `pod \"none\" not found`},
		{"namespace=other&pod=big", http.StatusNotFound, `"reason":"NotFound"`},
		{"pod=big", http.StatusBadRequest, "must be set"},
		{"namespace=default&pod=big&top=x", http.StatusBadRequest, "top is"},
		{"namespace=default&pod=big&misses=1001", http.StatusBadRequest, "from 0 to 1000"},
	} {
		h, _ := serve(t)
		if w := get(h, test.query); w.Code != test.code || !strings.Contains(w.Body.String(), test.body) {
			t.Errorf("%s gives %d %s, want %d and %q", test.query, w.Code, w.Body, test.code, test.body)
		}
	}
}

func TestOptionsReachTheScheduler(t *testing.T) {
	h, o := serve(t)
	get(h, "namespace=default&pod=big&node=n2&top=7&misses=0")
	if want := (cycle.RecordOptions{Top: 7, Misses: 0, Node: "n2"}); o.asked != want {
		t.Errorf("the scheduler is asked with %+v, want %+v", o.asked, want)
	}
	o.err = errors.New("it is going down")
	if w := get(h, "namespace=default&pod=big"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "going down") {
		t.Errorf("an error gives %d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST gives %d", w.Code)
	}
}
