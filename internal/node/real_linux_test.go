package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ggcr "github.com/google/go-containerregistry/pkg/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/node/cgroup"
	"github.com/bayplan/bayplan/internal/node/logs"
	"github.com/bayplan/bayplan/internal/node/runtime/embedded"
	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// patience bounds what a test waits for; on a quiet machine everything takes milliseconds.
const patience = 20 * time.Second

// real is a node on the embedded runtime, with an API in memory.
type real struct {
	t      testing.TB
	api    *fake.Clientset
	config embedded.Config
	root   string
	cri    *embedded.Runtime
	// cgroups is the node's tree, which is gone after the test.
	cgroups *cgroup.Node
	node    *Node
	cancel  context.CancelFunc
	done    chan error
}

func newReal(t testing.TB) *real {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers need root")
	}
	dir := t.TempDir()
	unique := fmt.Sprintf("node-%d-%d", os.Getpid(), time.Now().UnixNano())
	store, err := image.Open(filepath.Join(dir, "images"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), bytes.NewReader(appArchive(t))); err != nil {
		t.Fatal(err)
	}
	r := &real{t: t, api: fake.NewClientset(), root: filepath.Join(dir, "node"), config: embedded.Config{
		Root: filepath.Join(dir, "runtime"), RunDir: "/run/bayplan-agent-test/" + unique, CgroupParent: "bayplan-agent-test/" + unique, Images: store,
	}}
	hierarchies, err := cgroup.Open()
	if err != nil {
		t.Skip("containers need cgroups: " + err.Error())
	}
	r.cgroups = cgroup.NewNode(hierarchies, r.config.CgroupParent)
	r.openRuntime()
	t.Cleanup(func() {
		ctx := context.Background()
		if r.cancel != nil {
			r.stop()
		}
		if err := r.node.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		r.removeAll(ctx)
		if err := r.cri.Close(ctx); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
		if err := r.cgroups.Remove(); err != nil {
			t.Errorf("cgroups are left: %v", err)
		}
		if err := os.RemoveAll(r.config.RunDir); err != nil {
			t.Error(err)
		}
		_ = os.Remove(filepath.Dir(r.config.RunDir)) // unless another test has its own there
	})
	return r
}

// removeAll takes ended pods away, which a shutdown leaves for their logs.
func (r *real) removeAll(ctx context.Context) {
	list, err := r.cri.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		r.t.Error(err)
		return
	}
	for _, s := range list.Items {
		if _, err := r.cri.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.Id}); err != nil {
			r.t.Error(err)
		}
		uid := types.UID(s.Labels[translate.LabelPodUID])
		if err := r.node.deps.Volumes.TearDown(ctx, uid); err != nil {
			r.t.Error(err)
		}
	}
}

// appArchive is the tests' image.
func appArchive(t testing.TB) []byte {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "app")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./testdata/app")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the app: %v: %s", err, output)
	}
	var archive bytes.Buffer
	recipe := image.Recipe{Tag: "app:1", Files: map[string]string{"/app": binary}, Config: ggcr.Config{Entrypoint: []string{"/app"}}}
	if err := image.Build(&archive, recipe); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func (r *real) openRuntime() {
	r.t.Helper()
	opened, err := embedded.New(r.t.Context(), r.config)
	if errors.Is(err, embedded.ErrNoHelper) {
		r.t.Skip("the pod helper was not built: run `make build`")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.cri = opened
}

func (r *real) start() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	n, err := New(ctx, Config{
		Name: "n1", Client: r.api, Runtime: r.cri, RootDir: r.root, Address: netip.MustParseAddr("10.0.0.1"), CgroupRoot: r.config.CgroupParent, Cgroups: r.cgroups,
	})
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	r.node, r.cancel, r.done = n, cancel, make(chan error, 1)
	go func() { r.done <- n.Run(ctx) }()
}

func (r *real) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Error(err)
	}
	r.cancel = nil
}

func (r *real) create(text string) *v1.Pod {
	r.t.Helper()
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		r.t.Fatal(err)
	}
	pod.Namespace, pod.UID, pod.Spec.NodeName = "default", types.UID("uid-"+pod.Name), "n1"
	made, err := r.api.CoreV1().Pods("default").Create(context.Background(), pod, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

// await waits until a pod is as wanted, and shows how it stands if that doesn't happen.
func (r *real) await(name, what string, wanted func(*v1.Pod) bool) *v1.Pod {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w, err := r.api.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	pod, err := r.api.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	for err == nil && !wanted(pod) {
		select {
		case e := <-w.ResultChan():
			if p, ok := e.Object.(*v1.Pod); ok && p.Name == name && e.Type != watch.Deleted {
				pod = p
			}
		case <-ctx.Done():
			status, _ := yaml.Marshal(pod.Status)
			r.t.Fatalf("pod %s is not %s:\n%s\n%s", name, what, status, r.events())
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return pod
}

func (r *real) events() string {
	list, err := r.api.CoreV1().Events("default").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	for _, e := range list.Items {
		fmt.Fprintf(&out, "%s %s %s: %s\n", e.InvolvedObject.Name, e.Type, e.Reason, e.Message)
	}
	return out.String()
}

func inPhase(phase v1.PodPhase) func(*v1.Pod) bool {
	return func(p *v1.Pod) bool { return p.Status.Phase == phase }
}

// awaitLog waits until a container has written a line.
func (r *real) awaitLog(pod *v1.Pod, container, line string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out := writerFunc(func(p []byte) (int, error) {
		if string(p) == line+"\n" {
			cancel()
		}
		return len(p), nil
	})
	path := filepath.Join(translate.LogDir(r.root, pod), translate.LogPath(container, 0))
	err := logs.Read(ctx, path, logs.Options{Tail: -1, Limit: -1, Follow: true}, out, out)
	if !errors.Is(err, context.Canceled) {
		r.t.Fatalf("container %s has not written %q: %v", container, line, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (r *real) log(pod *v1.Pod, container string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(translate.LogDir(r.root, pod), container, "0.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(data)
}

const firstPod = `
metadata: {name: p}
spec:
  restartPolicy: Never
  initContainers:
  - {name: init, image: "app:1", args: ["write=/shared/x,from init"], volumeMounts: [{name: shared, mountPath: /shared}]}
  containers:
  - name: app
    image: "app:1"
    args: ["env=COLOUR", "cat=/shared/x", "cat=/etc/settings/colour", "cat=/sub", "print=", "print=$(COLOUR)!", "write=/dev/termination-log,done", "exit=3"]
    env: [{name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}]
    terminationMessagePath: /dev/termination-log
    volumeMounts:
    - {name: shared, mountPath: /shared, readOnly: true}
    - {name: settings, mountPath: /etc/settings}
    - {name: shared, mountPath: /sub, subPath: x}
  volumes:
  - {name: shared, emptyDir: {medium: Memory}}
  - {name: settings, configMap: {name: settings}}
`

func TestRealPod(t *testing.T) {
	r := newReal(t)
	r.start()
	_, err := r.api.CoreV1().ConfigMaps("default").Create(t.Context(), &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r.create(firstPod)
	pod := r.await("p", "failed", inPhase(v1.PodFailed))
	state := pod.Status.ContainerStatuses[0].State.Terminated
	if state == nil || state.ExitCode != 3 || state.Message != "done" || state.Reason != "Error" {
		t.Errorf("state %+v", state)
	}
	var text []string
	for line := range strings.Lines(r.log(pod, "app")) {
		text = append(text, strings.TrimSpace(strings.SplitN(line, " ", 4)[3]))
	}
	if got, want := strings.Join(text, "|"), "COLOUR=blue|from initbluefrom init|blue!"; got != want {
		t.Errorf("the app printed %q, want %q", got, want)
	}
}

func TestRealAdoption(t *testing.T) {
	r := newReal(t)
	r.start()
	r.create(`
metadata: {name: p}
spec:
  restartPolicy: Always
  containers:
  - {name: app, image: "app:1", args: [wait], resources: {requests: {cpu: 100m}, limits: {cpu: 200m, memory: 64Mi}}}
`)
	pod := r.await("p", "running", inPhase(v1.PodRunning))
	id := pod.Status.ContainerStatuses[0].ContainerID
	if !strings.HasPrefix(id, "bayplan://") {
		t.Errorf("containerID %q", id)
	}
	r.awaitLog(pod, "app", "waiting")
	r.stop()
	if err := r.cri.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.openRuntime()
	r.start()
	last := r.remove("p", 5)
	if s := last.Status.ContainerStatuses[0]; s.ContainerID != id || s.RestartCount != 0 || s.State.Terminated == nil || s.State.Terminated.ExitCode != 0 {
		t.Errorf("the container's last status is %+v, want exit code 0 of %s", s, id)
	}
}

func TestRealOOM(t *testing.T) {
	r := newReal(t)
	r.start()
	r.create(`
metadata: {name: p}
spec:
  restartPolicy: Never
  containers:
  - {name: app, image: "app:1", args: ["eat=200"], resources: {limits: {memory: 32Mi}}}
`)
	pod := r.await("p", "failed", inPhase(v1.PodFailed))
	state := pod.Status.ContainerStatuses[0].State.Terminated
	if state == nil || state.ExitCode != 137 || state.Reason != "OOMKilled" {
		t.Errorf("state %+v, want OOMKilled with exit code 137", state)
	}
}

// remove deletes a pod as a user would, waits until it has left the API, and returns it as it was last.
func (r *real) remove(name string, grace int64) *v1.Pod {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w, err := r.api.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	pod, err := r.api.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		now := metav1.Now()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &grace
		_, err = r.api.CoreV1().Pods("default").Update(ctx, pod, metav1.UpdateOptions{})
	}
	for err == nil {
		select {
		case e := <-w.ResultChan():
			if p, ok := e.Object.(*v1.Pod); ok && p.Name == name {
				pod = p
			}
			if e.Type == watch.Deleted {
				return pod
			}
		case <-ctx.Done():
			status, _ := yaml.Marshal(pod.Status)
			r.t.Fatalf("pod %s is still there:\n%s", name, status)
		}
	}
	r.t.Fatal(err)
	return nil
}
