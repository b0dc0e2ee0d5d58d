package relay

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/apiserver/pkg/registry/rest"
	utilproxy "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

// streamStorage is pods/exec, pods/attach and pods/portforward: a connection that is upgraded to SPDY or WebSocket and passed on to the node.
type streamStorage struct {
	pods
	options func() runtime.Object
	target  func(pod *corev1.Pod, options runtime.Object) (path []string, query url.Values, err error)
}

// New implements rest.Storage: in discovery, and to admission, what is sent to such a sub-resource are its options.
func (s *streamStorage) New() runtime.Object { return s.options() }

// NewConnectOptions implements rest.Connecter.
func (s *streamStorage) NewConnectOptions() (runtime.Object, bool, string) {
	return s.options(), false, ""
}

// ConnectMethods implements rest.Connecter.
func (*streamStorage) ConnectMethods() []string { return []string{"GET", "POST"} }

// Connect implements rest.Connecter.
func (s *streamStorage) Connect(ctx context.Context, name string, options runtime.Object, responder rest.Responder) (http.Handler, error) {
	pod, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	path, query, err := s.target(pod, options)
	if err != nil {
		return nil, err
	}
	location, err := s.nodes.location(ctx, pod, query, path...)
	if err != nil {
		return nil, err
	}
	transport := s.nodes.nodeTransport()
	handler := proxy.NewUpgradeAwareHandler(location, transport, false, true, proxy.NewErrorResponder(responder))
	return translate(handler, location, transport, options), nil
}

// translate passes on to the node, which speaks SPDY, what clients ask by WebSocket in the protocols that end streams properly (KEP-4006).
func translate(handler http.Handler, location *url.URL, transport http.RoundTripper, options runtime.Object) http.Handler {
	var wanted utilproxy.Options
	switch o := options.(type) {
	case *corev1.PodExecOptions:
		wanted = utilproxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr && !o.TTY, Tty: o.TTY}
	case *corev1.PodAttachOptions:
		wanted = utilproxy.Options{Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr && !o.TTY, Tty: o.TTY}
	default:
		return utilproxy.NewTranslatingHandler(handler, utilproxy.NewTunnelingHandler(handler), wsstream.IsWebSocketRequestWithTunnelingProtocol)
	}
	translator := utilproxy.NewStreamTranslatorHandler(location, transport, 0, wanted)
	return utilproxy.NewTranslatingHandler(handler, translator, wsstream.IsWebSocketRequestWithStreamCloseProtocol)
}

func execTarget(pod *corev1.Pod, options runtime.Object) ([]string, url.Values, error) {
	o := options.(*corev1.PodExecOptions)
	if len(o.Command) == 0 {
		return nil, nil, apierrors.NewBadRequest("you must specify at least one command for the container")
	}
	container, err := chooseContainer(pod, o.Container)
	if err != nil {
		return nil, nil, err
	}
	query, err := streams(o.Stdin, o.Stdout, o.Stderr, o.TTY)
	if err != nil {
		return nil, nil, err
	}
	query["command"] = o.Command
	return []string{"exec", pod.Namespace, pod.Name, container}, query, nil
}

func attachTarget(pod *corev1.Pod, options runtime.Object) ([]string, url.Values, error) {
	o := options.(*corev1.PodAttachOptions)
	container, err := chooseContainer(pod, o.Container)
	if err != nil {
		return nil, nil, err
	}
	query, err := streams(o.Stdin, o.Stdout, o.Stderr, o.TTY)
	if err != nil {
		return nil, nil, err
	}
	return []string{"attach", pod.Namespace, pod.Name, container}, query, nil
}

func portForwardTarget(pod *corev1.Pod, options runtime.Object) ([]string, url.Values, error) {
	query := url.Values{}
	for _, port := range options.(*corev1.PodPortForwardOptions).Ports {
		query.Add("port", strconv.Itoa(int(port)))
	}
	return []string{"portForward", pod.Namespace, pod.Name}, query, nil
}

// streams names the streams of a session as the node's API does.
func streams(stdin, stdout, stderr, tty bool) (url.Values, error) {
	if tty && stderr {
		// A terminal has one stream of output.
		stderr = false
	}
	if !stdin && !stdout && !stderr {
		return nil, apierrors.NewBadRequest("you must specify at least one of stdin, stdout, stderr")
	}
	query := url.Values{}
	for name, wanted := range map[string]bool{"input": stdin, "output": stdout, "error": stderr, "tty": tty} {
		if wanted {
			query.Set(name, "1")
		}
	}
	return query, nil
}
