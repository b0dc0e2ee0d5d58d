package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/logs"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// logOptions are the options of a request for logs.
type logOptions struct {
	logs.Options
	previous       bool
	stdout, stderr bool
}

// parseLogOptions reads the query of a request.
func parseLogOptions(q url.Values, now time.Time) (logOptions, error) {
	o := logOptions{Options: logs.Options{Tail: -1, Limit: -1}, stdout: true, stderr: true}
	var err error
	number := func(name string, into *int64) {
		if text := q.Get(name); text != "" && err == nil {
			if *into, err = strconv.ParseInt(text, 10, 64); err == nil && *into < 0 {
				err = fmt.Errorf("%d is negative", *into)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	flag := func(name string, into *bool) {
		if text := q.Get(name); text != "" && err == nil {
			if *into, err = strconv.ParseBool(text); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	number("tailLines", &o.Tail)
	number("limitBytes", &o.Limit)
	flag("follow", &o.Follow)
	flag("timestamps", &o.Timestamps)
	flag("previous", &o.previous)
	since := int64(-1)
	number("sinceSeconds", &since)
	if since >= 0 {
		o.Since = now.Add(-time.Duration(since) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" && err == nil {
		if o.Since, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("sinceTime: %w", err)
		}
	}
	switch stream := q.Get("stream"); stream {
	case "", v1.LogStreamAll:
	case v1.LogStreamStdout:
		o.stderr = false
	case v1.LogStreamStderr:
		o.stdout = false
	default:
		err = fmt.Errorf("stream: %q is none of All, Stdout and Stderr", stream)
	}
	return o, err
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	o, err := parseLogOptions(r.URL.Query(), s.Clock.Now())
	if err != nil {
		http.Error(w, "log options: "+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	pod := s.pod(r)
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", r.PathValue("pod")), http.StatusNotFound)
		return
	}
	path, id, err := s.logPath(r.Context(), pod, r.PathValue("container"), o.previous)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if o.Follow {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		o.Ended = s.ended(ctx, id)
	}
	out := &flusher{w: w}
	w.Header().Set("Content-Type", "text/plain")
	var stdout, stderr io.Writer
	if o.stdout {
		stdout = out
	}
	if o.stderr {
		stderr = out
	}
	out.flush()
	if err := logs.Read(r.Context(), path, o.Options, stdout, stderr); err != nil && r.Context().Err() == nil {
		fmt.Fprintf(w, "failed to read the log of container %q: %v\n", r.PathValue("container"), err)
	}
}

// flusher sends each entry off at once.
type flusher struct {
	w http.ResponseWriter
}

func (f *flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.flush()
	return n, err
}

func (f *flusher) flush() {
	if fl, ok := f.w.(http.Flusher); ok {
		fl.Flush()
	}
}

// logPath finds the log of a container's newest attempt, or of the one before. The runtime knows it; when it has forgotten the attempt, the
// file may still be there.
func (s *Server) logPath(ctx context.Context, pod *v1.Pod, name string, previous bool) (path, id string, err error) {
	status := statusOf(pod, name)
	if status == nil && !hasContainer(pod, name) {
		return "", "", fmt.Errorf("container %q is not valid for pod %q", name, pod.Name)
	}
	list, err := s.Runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: map[string]string{
		translate.LabelPodUID: string(pod.UID), translate.LabelContainerName: name,
	}}})
	if err != nil {
		return "", "", fmt.Errorf("containers of pod %q: %w", pod.Name, err)
	}
	newest := int64(-1)
	for _, c := range list.Containers {
		if a := int64(c.GetMetadata().GetAttempt()); a > newest && c.State != cri.ContainerState_CONTAINER_CREATED {
			newest, id = a, c.Id
		}
	}
	if newest < 0 && status != nil {
		newest = int64(status.RestartCount)
	}
	if previous {
		newest, id = newest-1, ""
	}
	path = filepath.Join(translate.LogDir(s.RootDir, pod), translate.LogPath(name, int32(newest)))
	if _, err := os.Stat(path); newest < 0 || err != nil {
		if previous {
			return "", "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
		}
		return "", "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name, waitingReason(status))
	}
	return path, id, nil
}

func statusOf(pod *v1.Pod, name string) *v1.ContainerStatus {
	for _, list := range [][]v1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func hasContainer(pod *v1.Pod, name string) bool {
	if translate.FindContainer(pod, name) != nil {
		return true
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			return true
		}
	}
	return false
}

func waitingReason(s *v1.ContainerStatus) string {
	if s != nil && s.State.Waiting != nil {
		return s.State.Waiting.Reason
	}
	return "ContainerCreating"
}

// endPoll is how often the runtime is asked whether a followed container has ended; its log itself is not polled.
const endPoll = time.Second

// ended is closed when the container doesn't run any more.
func (s *Server) ended(ctx context.Context, id string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			resp, err := s.Runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: id})
			if err != nil || resp.Status.State != cri.ContainerState_CONTAINER_RUNNING {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-s.Clock.After(endPoll):
			}
		}
	}()
	return done
}
