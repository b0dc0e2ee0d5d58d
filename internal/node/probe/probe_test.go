package probe

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
)

// commands answers ExecSync.
type commands func(cmd []string) (*cri.ExecSyncResponse, error)

func (c commands) ExecSync(_ context.Context, r *cri.ExecSyncRequest) (*cri.ExecSyncResponse, error) {
	return c(r.Cmd)
}

func newProber() *Prober {
	return &Prober{Clock: clock.RealClock{}, Dial: (&net.Dialer{}).DialContext, Runtime: commands(func(cmd []string) (*cri.ExecSyncResponse, error) {
		switch cmd[0] {
		case "ok":
			return &cri.ExecSyncResponse{Stdout: []byte("fine")}, nil
		case "slow":
			return nil, context.DeadlineExceeded
		case "broken":
			return nil, errors.New("no such process")
		}
		return &cri.ExecSyncResponse{ExitCode: 1, Stderr: []byte("sick")}, nil
	})}
}

func (p *Prober) expect(t *testing.T, spec v1.ProbeHandler, target Target, result Result, output string) {
	t.Helper()
	got, text := p.Once(t.Context(), &v1.Probe{ProbeHandler: spec, TimeoutSeconds: 5}, target)
	if got != result || !strings.Contains(text, output) {
		t.Errorf("%s: %v %q, want %v with %q", spec.String(), got, text, result, output)
	}
}

func TestExec(t *testing.T) {
	p, target := newProber(), Target{Container: &v1.Container{}}
	for command, c := range map[string]struct {
		result Result
		output string
	}{"ok": {Success, "fine"}, "bad": {Failure, "sick"}, "slow": {Failure, "timed out after 5s"}, "broken": {Errored, "no such process"}} {
		p.expect(t, v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{command}}}, target, c.result, c.output)
	}
	p.expect(t, v1.ProbeHandler{}, target, Errored, "no handler")
}

func TestHTTP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/headers":
			if r.Header.Get("X-Test") != "yes" || r.Host != "name" || r.UserAgent() != userAgent {
				w.WriteHeader(http.StatusTeapot)
			}
		case "/sick":
			w.WriteHeader(http.StatusInternalServerError)
		case "/here":
			http.Redirect(w, r, "/?q=1", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://example.invalid/", http.StatusFound)
		}
	}))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	target := Target{IP: "127.0.0.1", Container: &v1.Container{Name: "c", Ports: []v1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}}}
	p := newProber()
	for _, c := range []struct {
		path   string
		port   intstr.IntOrString
		result Result
		output string
	}{
		{"/", intstr.FromInt(port), Success, ""},
		{"no-slash", intstr.FromString("web"), Success, ""},
		{"/headers", intstr.FromString("web"), Success, ""},
		{"/sick", intstr.FromString("web"), Failure, "HTTP probe failed with statuscode: 500"},
		{"/here", intstr.FromString("web"), Success, ""},
		{"/away", intstr.FromString("web"), Warning, "redirects"},
		{"/", intstr.FromString("none"), Errored, `no port "none"`},
	} {
		action := &v1.HTTPGetAction{Path: c.path, Port: c.port, HTTPHeaders: []v1.HTTPHeader{{Name: "X-Test", Value: "yes"}, {Name: "Host", Value: "name"}}}
		p.expect(t, v1.ProbeHandler{HTTPGet: action}, target, c.result, c.output)
	}
	p.expect(t, v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}}, target, Success, "")
	server.Close()
	p.expect(t, v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Port: intstr.FromInt(port)}}, target, Failure, "refused")
	p.expect(t, v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt(port)}}, target, Failure, "refused")
}

func TestGRPC(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, states := grpc.NewServer(), health.NewServer()
	healthpb.RegisterHealthServer(server, states)
	states.SetServingStatus("sick", healthpb.HealthCheckResponse_NOT_SERVING)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	p, target := newProber(), Target{IP: "127.0.0.1", Container: &v1.Container{}}
	port := int32(listener.Addr().(*net.TCPAddr).Port)
	sick, unknown := "sick", "unknown"
	p.expect(t, v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: port}}, target, Success, "")
	p.expect(t, v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: port, Service: &sick}}, target, Failure, `responded with "NOT_SERVING"`)
	p.expect(t, v1.ProbeHandler{GRPC: &v1.GRPCAction{Port: port, Service: &unknown}}, target, Failure, "unknown service")
}

// Delays, periods and thresholds count from the container's start.
func TestRunTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProber()
		begin := time.Now()
		var sick atomic.Bool
		p.Runtime = commands(func([]string) (*cri.ExecSyncResponse, error) {
			if !sick.Load() {
				return &cri.ExecSyncResponse{}, nil
			}
			return &cri.ExecSyncResponse{ExitCode: 1}, nil
		})
		type seen struct {
			at      time.Duration
			verdict Verdict
		}
		var got []seen
		ctx, cancel := context.WithCancel(t.Context())
		spec := &v1.Probe{InitialDelaySeconds: 5, PeriodSeconds: 10, SuccessThreshold: 2, FailureThreshold: 2,
			ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"x"}}}}
		go p.Run(ctx, spec, Target{StartedAt: begin, Container: &v1.Container{}}, func(_ Result, _ string, v Verdict) {
			got = append(got, seen{time.Since(begin), v})
		})
		time.Sleep(26 * time.Second)
		sick.Store(true)
		time.Sleep(20 * time.Second)
		cancel()
		synctest.Wait()
		want := []seen{{5 * time.Second, NoChange}, {15 * time.Second, Good}, {25 * time.Second, NoChange}, {35 * time.Second, NoChange}, {45 * time.Second, Bad}}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("request %d: %v, want %v", i, got[i], want[i])
			}
		}
	})
}

// A verdict is never said twice in a row, and only after its threshold of equal outcomes.
func TestRow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &row{success: rapid.IntRange(1, 4).Draw(t, "success"), failure: rapid.IntRange(1, 4).Draw(t, "failure")}
		said, count, last := NoChange, 0, Errored
		for _, result := range rapid.SliceOfN(rapid.SampledFrom([]Result{Success, Warning, Failure, Errored}), 0, 40).Draw(t, "results") {
			v := r.add(result)
			if result != Errored {
				good := result != Failure
				if result = Failure; good {
					result = Success
				}
				if result != last {
					count = 0
				}
				count, last = count+1, result
			}
			if v == NoChange {
				continue
			}
			if v == said || v == Good && (last != Success || count < r.success) || v == Bad && (last != Failure || count < r.failure) {
				t.Fatalf("verdict %v after %d of %v, before it %v", v, count, last, said)
			}
			said = v
		}
	})
}

func TestHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, target := newProber(), Target{Container: &v1.Container{}}
		begin := time.Now()
		if err := p.Hook(t.Context(), &v1.LifecycleHandler{Sleep: &v1.SleepAction{Seconds: 3}}, target, 0); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("sleep: %v after %s", err, time.Since(begin))
		}
		if err := p.Hook(t.Context(), &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"ok"}}}, target, time.Second); err != nil {
			t.Error(err)
		}
		if err := p.Hook(t.Context(), &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"bad"}}}, target, time.Second); err == nil {
			t.Error("a failed hook is no error")
		}
	})
}
