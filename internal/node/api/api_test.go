package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/fakecri"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// fixture is a node API over a runtime with one pod, which has one running container.
type fixture struct {
	*Server
	t   *testing.T
	cri *fakecri.Runtime
	log string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app"}, {Name: "late"}}},
		Status: v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{
			{Name: "app", RestartCount: 1}, {Name: "late", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}},
		}},
	}
	runtime := fakecri.New(clock.RealClock{})
	s := &Server{Runtime: runtime, Pods: func() []*v1.Pod { return []*v1.Pod{pod} }, RootDir: t.TempDir(), Node: "n1", Clock: clock.RealClock{}}
	node := &translate.Node{RootDir: s.RootDir, CgroupRoot: "x"}
	box, err := runtime.RunPodSandbox(t.Context(), &cri.RunPodSandboxRequest{Config: translate.Sandbox(node, pod, 0)})
	if err != nil {
		t.Fatal(err)
	}
	config := translate.Container(node, pod, &pod.Spec.Containers[0], translate.ContainerInput{Attempt: 1})
	made, err := runtime.CreateContainer(t.Context(), &cri.CreateContainerRequest{PodSandboxId: box.PodSandboxId, Config: config})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runtime.StartContainer(t.Context(), &cri.StartContainerRequest{ContainerId: made.ContainerId}); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(translate.LogDir(s.RootDir, pod), "app")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := &fixture{s, t, runtime, filepath.Join(dir, "1.log")}
	f.write(filepath.Join(dir, "0.log"), "2026-11-30T11:00:00Z stdout F before\n")
	f.write(f.log, "2026-11-30T12:00:00Z stdout F one\n2026-11-30T12:00:01Z stderr F two\n2026-11-30T12:00:02Z stdout F three\n")
	return f
}

func (f *fixture) write(path, text string) {
	f.t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(path string) (int, string) {
	w := httptest.NewRecorder()
	f.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestLogs(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"/containerLogs/ns/p/app":                                "200 one\ntwo\nthree\n",
		"/containerLogs/ns/p/app?tailLines=1":                    "200 three\n",
		"/containerLogs/ns/p/app?limitBytes=5":                   "200 one\nt",
		"/containerLogs/ns/p/app?previous=true":                  "200 before\n",
		"/containerLogs/ns/p/app?stream=Stderr":                  "200 two\n",
		"/containerLogs/ns/p/app?sinceTime=2026-11-30T12:00:02Z": "200 three\n",
		"/containerLogs/ns/p/app?tailLines=1&timestamps=true":    "200 2026-11-30T12:00:02.000000000Z three\n",
		"/containerLogs/ns/p/app?tailLines=-1":                   "422 log options: tailLines: -1 is negative\n",
		"/containerLogs/ns/p/app?follow=perhaps":                 "422 log options: follow: strconv.ParseBool: parsing \"perhaps\": invalid syntax\n",
		"/containerLogs/ns/p/none":                               "400 container \"none\" is not valid for pod \"p\"\n",
		"/containerLogs/ns/p/late":                               "400 container \"late\" in pod \"p\" is waiting to start: ImagePullBackOff\n",
		"/containerLogs/ns/p/late?previous=1":                    "400 previous terminated container \"late\" in pod \"p\" not found\n",
		"/containerLogs/ns/other/app":                            "404 pod \"other\" does not exist\n",
		"/healthz":                                               "200 ok",
	} {
		code, body := f.get(path)
		if got := fmt.Sprintf("%d %s", code, body); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func FuzzLogOptions(f *testing.F) {
	f.Add("tailLines=3&sinceSeconds=4&sinceTime=2026-11-30T12:00:00Z&stream=All&limitBytes=1")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Skip("no query")
		}
		o, err := parseLogOptions(q, time.Unix(0, 0))
		if err == nil && (o.Tail < -1 || o.Limit < -1) {
			t.Errorf("%q gives %+v", query, o)
		}
	})
}

func TestFollow(t *testing.T) {
	f := newFixture(t)
	server := httptest.NewServer(f.Handler())
	defer server.Close()
	resp, err := http.Get(server.URL + "/containerLogs/ns/p/app?follow=true&tailLines=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 100)
	n, err := resp.Body.Read(buf)
	if err != nil || string(buf[:n]) != "three\n" {
		t.Fatalf("got %q, %v", buf[:n], err)
	}
	f.write(f.log, "2026-11-30T12:00:03Z stdout F four\n")
	if err := f.cri.Exit("p", "app", 0, ""); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "four\n" {
		t.Errorf("rest %q, %v", rest, err)
	}
}

func TestStreamsAreRefusedClearly(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		"/exec/ns/p/app?command=ls": "501", "/attach/ns/p/app": "501", "/portForward/ns/p?port=80": "501",
		"/exec/ns/p/late?command=ls": `404 container not found ("late")`, "/portForward/ns/p?port=x": "400 port \"x\"",
	} {
		code, body := f.get(path)
		if got := fmt.Sprintf("%d %s", code, body); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestPodsAndSummary(t *testing.T) {
	f := newFixture(t)
	var list v1.PodList
	if _, body := f.get("/pods"); json.Unmarshal([]byte(body), &list) != nil || len(list.Items) != 1 || list.Items[0].Name != "p" {
		t.Errorf("pods %+v", list)
	}
	s := f.summarize([]*cri.ContainerStats{{
		Attributes: &cri.ContainerAttributes{Labels: map[string]string{translate.LabelPodUID: "u", translate.LabelContainerName: "app"}},
		Cpu:        &cri.CpuUsage{UsageCoreNanoSeconds: &cri.UInt64Value{Value: 7}},
		Memory:     &cri.MemoryUsage{WorkingSetBytes: &cri.UInt64Value{Value: 9}},
	}, {Attributes: &cri.ContainerAttributes{Labels: map[string]string{translate.LabelPodUID: "another"}}}})
	if len(s.Pods) != 1 || s.Pods[0].Containers[0].Name != "app" || *s.Node.CPU.UsageCoreNanoSeconds != 7 || *s.Pods[0].Memory.WorkingSetBytes != 9 {
		t.Errorf("summary %+v", s)
	}
}

func TestResourceMetrics(t *testing.T) {
	f := newFixture(t)
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := f.summarize([]*cri.ContainerStats{{
		Attributes: &cri.ContainerAttributes{Labels: map[string]string{translate.LabelPodUID: "u", translate.LabelContainerName: "app"}},
		Cpu:        &cri.CpuUsage{Timestamp: at.UnixNano(), UsageCoreNanoSeconds: &cri.UInt64Value{Value: 1500000000}},
		Memory:     &cri.MemoryUsage{Timestamp: at.UnixNano(), WorkingSetBytes: &cri.UInt64Value{Value: 4096}},
	}})
	got := formatMetrics(s, 0)
	for _, want := range []string{
		"# TYPE container_cpu_usage_seconds_total counter\ncontainer_cpu_usage_seconds_total{container=\"app\",namespace=\"ns\",pod=\"p\"} 1.5 1796040000000\n",
		"pod_memory_working_set_bytes{namespace=\"ns\",pod=\"p\"} 4096 ", "node_cpu_usage_seconds_total 1.5 ", "resource_scrape_error 0\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if code, body := f.get("/metrics/resource"); code != 200 || !strings.Contains(body, "resource_scrape_error 0") {
		t.Errorf("%d %s", code, body)
	}
}

// authority signs certificates for the test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestOnlyTheAPIServerMayCome(t *testing.T) {
	f := newFixture(t)
	ours, theirs := newAuthority(t), newAuthority(t)
	pool := x509.NewCertPool()
	pool.AddCert(ours.cert)
	f.Certificate, f.ClientCAs, f.ClientNames = ours.issue(t, "n1"), pool, []string{"kube-apiserver-kubelet-client"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, listener) }()
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		welcome      bool
	}{
		"the API server":        {[]tls.Certificate{ours.issue(t, "kube-apiserver-kubelet-client")}, true},
		"somebody else":         {[]tls.Certificate{ours.issue(t, "system:node:n2")}, false},
		"of another authority":  {[]tls.Certificate{theirs.issue(t, "kube-apiserver-kubelet-client")}, false},
		"without a certificate": {nil, false},
	} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: c.certificates}, DisableKeepAlives: true}}
		resp, err := client.Get("https://" + listener.Addr().String() + "/healthz")
		if (err == nil) != c.welcome {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			resp.Body.Close()
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
