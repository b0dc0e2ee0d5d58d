package relay

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func podWith(annotations map[string]string, initial, ordinary []string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: annotations}}
	for _, name := range initial {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: name})
	}
	for _, name := range ordinary {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: name})
	}
	return p
}

func TestChooseContainer(t *testing.T) {
	marked := map[string]string{DefaultContainerAnnotation: "b"}
	for _, test := range []struct {
		pod        *corev1.Pod
		name, want string
		message    string
	}{
		{pod: podWith(nil, nil, []string{"a"}), want: "a"},
		{pod: podWith(nil, []string{"i"}, []string{"a"}), want: "a"},
		{pod: podWith(nil, []string{"i"}, []string{"a"}), name: "i", want: "i"},
		{pod: podWith(marked, nil, []string{"a", "b"}), want: "b"},
		{pod: podWith(marked, nil, []string{"a", "b"}), name: "a", want: "a"},
		{pod: podWith(nil, nil, []string{"a", "b"}), message: "a container name must be specified for pod p, choose one of: [a b]"},
		{pod: podWith(nil, []string{"i"}, []string{"a", "b"}), message: "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"},
		{pod: podWith(nil, nil, []string{"a"}), name: "x", message: "container x is not valid for pod p"},
	} {
		got, err := chooseContainer(test.pod, test.name)
		if got != test.want || (err == nil) != (test.message == "") || err != nil && err.Error() != test.message {
			t.Errorf("%q of %v: %q, %v; want %q, %q", test.name, test.pod.Spec.Containers, got, err, test.want, test.message)
		}
	}
}

func TestDecodeQuery(t *testing.T) {
	var log corev1.PodLogOptions
	query, _ := url.ParseQuery("container=c&follow=true&previous=false&tailLines=5&sinceTime=2026-01-02T03:04:05Z&timestamps&unknown=1")
	if err := decodeQuery(query, &log); err != nil {
		t.Fatal(err)
	}
	want := corev1.PodLogOptions{Container: "c", Follow: true, Timestamps: true, TailLines: ptr.To[int64](5), SinceTime: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Local()}}
	if !reflect.DeepEqual(log, want) {
		t.Errorf("got %+v, want %+v", log, want)
	}
	var exec corev1.PodExecOptions
	query, _ = url.ParseQuery("command=a&command=b%20c&stdin=1&tty=0")
	if err := decodeQuery(query, &exec); err != nil || !reflect.DeepEqual(exec, corev1.PodExecOptions{Command: []string{"a", "b c"}, Stdin: true}) {
		t.Errorf("got %+v, %v", exec, err)
	}
	var forward corev1.PodPortForwardOptions
	if err := decodeQuery(url.Values{"ports": {"80", "443"}}, &forward); err != nil || !reflect.DeepEqual(forward.Ports, []int32{80, 443}) {
		t.Errorf("got %v, %v", forward.Ports, err)
	}
	if err := decodeQuery(url.Values{"tailLines": {"many"}}, &log); err == nil || !strings.Contains(err.Error(), "tailLines") {
		t.Errorf("a bad number: %v, want an error that names the parameter", err)
	}
}

func FuzzDecodeQuery(f *testing.F) {
	f.Add("container=c&tailLines=-1&sinceTime=x&follow")
	f.Add("ports=1&ports=99999999999&command=")
	f.Fuzz(func(t *testing.T, text string) {
		query, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		for _, options := range []any{&corev1.PodLogOptions{}, &corev1.PodExecOptions{}, &corev1.PodPortForwardOptions{}, &corev1.PodProxyOptions{}} {
			_ = decodeQuery(query, options)
		}
	})
}

func TestLogQueryRoundTrip(t *testing.T) {
	want := corev1.PodLogOptions{Follow: true, Previous: true, Timestamps: true, SinceSeconds: ptr.To[int64](3), TailLines: ptr.To[int64](0), LimitBytes: ptr.To[int64](7)}
	var got corev1.PodLogOptions
	if err := decodeQuery(logQuery(&want), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestPodHost(t *testing.T) {
	pod := podWith(nil, nil, []string{"a"})
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "admin", ContainerPort: 9090}}
	for _, test := range []struct{ address, port, want, message string }{
		{"10.1.0.2", "", "10.1.0.2:8080", ""},
		{"10.1.0.2", "admin", "10.1.0.2:9090", ""},
		{"10.1.0.2", "81", "10.1.0.2:81", ""},
		{"", "", "", "no address yet"},
		{"127.0.0.1", "", "", "not allowed"},
		{"169.254.169.254", "", "", "not allowed"},
		{"0.0.0.0", "", "", "not allowed"},
		{"metadata", "", "", "not allowed"},
	} {
		pod.Status.PodIP = test.address
		got, err := podHost(pod, test.port)
		if got != test.want || (err == nil) != (test.message == "") || err != nil && !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s port %q: %q, %v; want %q, %q", test.address, test.port, got, err, test.want, test.message)
		}
	}
}

func TestStreams(t *testing.T) {
	if _, err := streams(false, false, false, false); err == nil {
		t.Error("a session without streams was accepted")
	}
	q, err := streams(true, true, true, true)
	if err != nil || q.Get("error") != "" || q.Get("input") != "1" || q.Get("tty") != "1" {
		t.Errorf("terminal: %v, %v; want no stream of errors", q, err)
	}
}

func TestAddressNeedsReport(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if _, err := address(node); err == nil || !strings.Contains(err.Error(), "node n") {
		t.Errorf("%v, want an error that names the node", err)
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "n"}, {Type: corev1.NodeInternalIP, Address: "172.30.0.2"}}
	if got, err := address(node); err != nil || got != "172.30.0.2:10250" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestServicePort(t *testing.T) {
	one := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	two := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "a", Port: 80}, {Name: "b", Port: 81}}}}
	for _, test := range []struct {
		service   *corev1.Service
		port      string
		want      string
		wantError bool
	}{
		{one, "", "", false}, {one, "80", "", false}, {one, "81", "", true},
		{two, "81", "b", false}, {two, "a", "a", false}, {two, "", "", false}, {two, "c", "", true},
	} {
		got, err := servicePort(test.service, test.port)
		if got != test.want || (err != nil) != test.wantError {
			t.Errorf("port %q: %q, %v; want %q", test.port, got, err, test.want)
		}
	}
}
