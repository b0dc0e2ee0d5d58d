package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/proxy"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/translate"
)

func (s *Server) exec(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.stream(w, r, r.PathValue("container"), func(ctx context.Context, id string) (string, error) {
		resp, err := s.Runtime.Exec(ctx, &cri.ExecRequest{
			ContainerId: id, Cmd: q["command"], Tty: flag(q, "tty"), Stdin: flag(q, "input") || flag(q, "stdin"),
			Stdout: flag(q, "output") || flag(q, "stdout"), Stderr: (flag(q, "error") || flag(q, "stderr")) && !flag(q, "tty"),
		})
		return resp.GetUrl(), err
	})
}

func (s *Server) attach(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.stream(w, r, r.PathValue("container"), func(ctx context.Context, id string) (string, error) {
		resp, err := s.Runtime.Attach(ctx, &cri.AttachRequest{
			ContainerId: id, Tty: flag(q, "tty"), Stdin: flag(q, "input") || flag(q, "stdin"),
			Stdout: flag(q, "output") || flag(q, "stdout"), Stderr: (flag(q, "error") || flag(q, "stderr")) && !flag(q, "tty"),
		})
		return resp.GetUrl(), err
	})
}

// flag is a query's truth value; the kubelet's API says 1, that of the API server true.
func flag(q url.Values, name string) bool {
	set, err := strconv.ParseBool(q.Get(name))
	return err == nil && set
}

func (s *Server) portForward(w http.ResponseWriter, r *http.Request) {
	pod := s.pod(r)
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	id, err := s.sandbox(r.Context(), pod)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var ports []int32
	for _, text := range r.URL.Query()["port"] {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			http.Error(w, fmt.Sprintf("port %q is not a number of a port", text), http.StatusBadRequest)
			return
		}
		ports = append(ports, int32(port))
	}
	resp, err := s.Runtime.PortForward(r.Context(), &cri.PortForwardRequest{PodSandboxId: id, Port: ports})
	s.handOn(w, r, resp.GetUrl(), err)
}

// stream asks the runtime for a streaming URL for a running container and hands the connection on.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, container string, ask func(ctx context.Context, id string) (string, error)) {
	pod := s.pod(r)
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	id, err := s.running(r.Context(), pod, container)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	to, err := ask(r.Context(), id)
	s.handOn(w, r, to, err)
}

func (s *Server) running(ctx context.Context, pod *v1.Pod, container string) (string, error) {
	list, err := s.Runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: map[string]string{
		translate.LabelPodUID: string(pod.UID), translate.LabelContainerName: container,
	}}})
	if err != nil {
		return "", err
	}
	for _, c := range list.Containers {
		if c.State == cri.ContainerState_CONTAINER_RUNNING {
			return c.Id, nil
		}
	}
	return "", fmt.Errorf("container not found (%q)", container)
}

func (s *Server) sandbox(ctx context.Context, pod *v1.Pod) (string, error) {
	list, err := s.Runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{
		LabelSelector: map[string]string{translate.LabelPodUID: string(pod.UID)},
	}})
	if err != nil {
		return "", err
	}
	for _, b := range list.Items {
		if b.State == cri.PodSandboxState_SANDBOX_READY {
			return b.Id, nil
		}
	}
	return "", fmt.Errorf("pod %q has no running sandbox", pod.Name)
}

// handOn lets the runtime's streaming server answer, which is on this machine and not reachable for the client.
func (s *Server) handOn(w http.ResponseWriter, r *http.Request, to string, err error) {
	if err != nil {
		code := http.StatusInternalServerError
		if status.Code(err) == codes.Unimplemented {
			code = http.StatusNotImplemented
		}
		http.Error(w, err.Error(), code)
		return
	}
	target, err := url.Parse(to)
	if err != nil {
		http.Error(w, "the runtime gave a streaming URL that is none: "+err.Error(), http.StatusInternalServerError)
		return
	}
	handler := proxy.NewUpgradeAwareHandler(target, nil, false, true, responder{})
	handler.ServeHTTP(w, r)
}

type responder struct{}

// Error tells the client what went wrong with the hand-over.
func (responder) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}
