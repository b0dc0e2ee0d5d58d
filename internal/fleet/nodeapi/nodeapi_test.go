package nodeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/bayplan/bayplan/internal/fleet/behavior"
	"github.com/bayplan/bayplan/internal/fleet/life"
	"github.com/bayplan/bayplan/internal/pki"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const address = "172.28.0.1"

// source has one node, sim-1, with one pod, whose containers are "c", which writes a line each second, and "waiting".
type source struct{ began, ended time.Time }

func (source) NodeAt(at string) string {
	if at == address {
		return "sim-1"
	}
	return ""
}

func (s source) Reaches(at string) bool { return s.NodeAt(at) != "" }

func (source) PodsOf(string) []*corev1.Pod {
	return []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"}, Status: corev1.PodStatus{StartTime: &metav1.Time{Time: start}}}}
}

func (s source) UsageOf(node string) []PodUsage {
	return []PodUsage{{Pod: s.PodsOf(node)[0], Containers: []life.ContainerUsage{
		{Name: "c", Started: start, CPU: 0.25, CPUTime: 2.5, Memory: 64 << 20}, {Name: "d", Started: start, CPU: 1, CPUTime: 10, Memory: 32 << 20},
	}}}
}

func (s source) LogOf(_, _, pod, name string, previous bool) (life.Log, error) {
	if pod != "p" || name != "c" || previous {
		return life.Log{}, errors.New("there is no such log")
	}
	rules, err := behavior.Compile(nil)
	if err != nil {
		return life.Log{}, err
	}
	api := s.PodsOf("")[0]
	api.Annotations = map[string]string{"bayplan.dev/behavior": `containers: [{logs: {lines: ["line {n}"], every: 1s, repeat: true}}]`}
	does, err := rules.For(api, nil, 1)
	if err != nil {
		return life.Log{}, err
	}
	return life.Log{Lines: does.Container(&corev1.Container{Name: "c"}, false, 0).Logs, Start: s.began, Ended: s.ended}, nil
}

func ask(s *Server, path string) (int, string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request = request.WithContext(context.WithValue(request.Context(), addressKey{}, netip.MustParseAddr(address)))
	answer := httptest.NewRecorder()
	s.Handler().ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func TestLogs(t *testing.T) {
	s := &Server{Source: source{began: start}, Clock: testingclock.NewFakeClock(start.Add(3500 * time.Millisecond))}
	for _, test := range []struct {
		query string
		code  int
		want  string
	}{
		{"c", 200, "line 1\nline 2\nline 3\nline 4\n"},
		{"c?tailLines=2", 200, "line 3\nline 4\n"},
		{"c?tailLines=0", 200, ""},
		{"c?limitBytes=10", 200, "line 1\nlin"},
		{"c?sinceSeconds=1", 200, "line 4\n"},
		{"c?sinceTime=2026-11-30T12:00:02Z", 200, "line 3\nline 4\n"},
		{"c?timestamps=true&tailLines=1", 200, "2026-11-30T12:00:03Z line 4\n"},
		{"c?stream=Stderr", 200, ""},
		{"c?tailLines=x", 422, "tailLines"},
		{"c?sinceTime=x", 422, "sinceTime"},
		{"c?follow=perhaps", 422, "follow"},
		{"c?previous=true", 400, "no such log"},
		{"other", 400, "no such log"},
	} {
		code, body := ask(s, "/containerLogs/default/p/"+test.query)
		if code != test.code || code == 200 && body != test.want || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d %q, want %d %q", test.query, code, body, test.code, test.want)
		}
	}
}

// TestFollow: a followed log ends with its container, and has all of its lines.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &Server{Source: source{began: began, ended: began.Add(1500 * time.Millisecond)}, Clock: clock.RealClock{}}
		time.Sleep(3500 * time.Millisecond)
		if _, body := ask(s, "/containerLogs/default/p/c?follow=true"); body != "line 1\nline 2\n" {
			t.Errorf("of a container that has ended: %q", body)
		}
		s.Source = source{began: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		answer := httptest.NewRecorder()
		go s.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/containerLogs/default/p/c?follow=true", nil).WithContext(ctx))
		time.Sleep(2500 * time.Millisecond)
		cancel()
		synctest.Wait()
		if body := answer.Body.String(); body != "line 1\nline 2\nline 3\n" {
			t.Errorf("of a container that runs: %q", body)
		}
	})
}

func TestUsage(t *testing.T) {
	s := &Server{Source: source{}, Clock: testingclock.NewFakeClock(start.Add(10 * time.Second))}
	_, body := ask(s, "/metrics/resource")
	for _, want := range []string{
		`container_cpu_usage_seconds_total{container="c",namespace="default",pod="p"} 2.5 `, `pod_cpu_usage_seconds_total{namespace="default",pod="p"} 12.5 `,
		"node_cpu_usage_seconds_total 12.5 ", "node_memory_working_set_bytes 1.00663296e+08 ", "# TYPE container_memory_working_set_bytes gauge\n", "resource_scrape_error 0\n",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	_, body = ask(s, "/stats/summary")
	for _, want := range []string{`"nodeName":"sim-1"`, `"usageNanoCores":1250000000`, `"usageCoreNanoSeconds":12500000000`, `"workingSetBytes":100663296`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	if _, body := ask(s, "/pods"); !strings.Contains(body, `"name":"p"`) {
		t.Errorf("pods: %s", body)
	}
	if code, body := ask(s, "/exec/default/p/c"); code != http.StatusNotImplemented || !strings.Contains(body, "node sim-1 is simulated") {
		t.Errorf("exec: %d %s", code, body)
	}
}

// TestServer: over TLS, by the dialer, only for those who may ask.
func TestServer(t *testing.T) {
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	identity := func(name string, addresses ...net.IP) tls.Certificate {
		i, err := authority.Identity(name, pki.Request{User: name, Addresses: addresses})
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := i.TLS()
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	network := NewNetwork(netip.MustParsePrefix("172.28.0.0/15"), netip.MustParsePrefix("10.128.0.0/10"))
	serving := identity("server", net.ParseIP(address))
	dial := network.Around(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("leads outside") })
	get := func(user, host string) (string, error) {
		client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			RootCAs: authority.Pool(), Certificates: []tls.Certificate{identity(user)},
		}}}
		answer, err := client.Get((&url.URL{Scheme: "https", Host: host, Path: "/healthz"}).String())
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	if _, err := get("apiserver", address+":10250"); err == nil || !strings.Contains(err.Error(), "no route to host") && !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("without a server: %v", err)
	}
	for round := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		server := &Server{
			Source: source{}, Network: network, Clock: clock.RealClock{}, ClientCAs: authority.Pool(), ClientNames: []string{"apiserver"},
			Certificate: func(netip.Addr) (*tls.Certificate, error) { return &serving, nil },
		}
		ended := make(chan error)
		listening := server.listen()
		go func() { ended <- server.serve(ctx, listening) }()
		for _, test := range []struct{ user, host, want string }{
			{"apiserver", address + ":10250", "ok"}, {"other", address + ":10250", "certificate"}, {"apiserver", "172.28.0.9:10250", "host"},
			{"apiserver", "10.128.0.1:80", "the pod is simulated"}, {"apiserver", "10.1.0.1:80", "leads outside"},
		} {
			body, err := get(test.user, test.host)
			if got := fmt.Sprint(body, err); !strings.Contains(got, test.want) {
				t.Errorf("round %d: %s asks %s: %s, want %q", round, test.user, test.host, got, test.want)
			}
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended: %v", err)
		}
	}
}

func FuzzOptions(f *testing.F) {
	f.Add("tailLines=5&limitBytes=3&sinceSeconds=9999999999999&follow=1")
	f.Add("sinceTime=0001-01-01T00:00:00Z&tailLines=99999999999")
	log, err := source{began: start, ended: start.Add(time.Minute)}.LogOf("", "", "p", "c", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		now := start.Add(time.Hour)
		o, err := parseOptions(query, now)
		if err != nil {
			return
		}
		answer := httptest.NewRecorder()
		first := firstLine(log, o, now)
		if first < 0 {
			t.Fatalf("%q: the first line is %d", text, first)
		}
		(&printer{w: answer, options: o, left: o.limit}).print(log, first, now)
		if o.limit >= 0 && int64(answer.Body.Len()) > o.limit {
			t.Errorf("%q: %d bytes", text, answer.Body.Len())
		}
	})
}
