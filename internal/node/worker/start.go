package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/image"
	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// failure is a start that failed, with the reason that the container's status shows.
type failure struct {
	reason, message string
}

func (f *failure) Error() string { return f.reason + ": " + f.message }

// startInput is what a start needs of the loop's state.
type startInput struct {
	lifecycle.Action
	spec     *v1.Container
	ips      []string
	targetID string
	granted  v1.ResourceRequirements
}

func (w *Worker) startInput(pod *v1.Pod, a lifecycle.Action) startInput {
	in := startInput{Action: a, spec: containerSpec(pod, a.Container)}
	in.granted = in.spec.Resources
	if granted, ok := w.memory.Allocated[a.Container]; ok {
		in.granted = granted
	}
	for _, s := range w.observed.Sandboxes {
		if s.ID == a.Sandbox {
			in.ips = s.IPs
		}
	}
	if pod.Spec.HostNetwork {
		in.ips = w.deps.Node().IPs
	}
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == a.Container && e.TargetContainerName != "" {
			in.targetID = w.runningID(e.TargetContainerName)
		}
	}
	return in
}

func (w *Worker) runningID(name string) string {
	for _, c := range w.observed.Containers {
		if c.Name == name && c.State == lifecycle.Running {
			return c.ID
		}
	}
	return ""
}

// startContainer takes one attempt of a container from its image to its postStart hook.
func (w *Worker) startContainer(ctx context.Context, pod *v1.Pod, in startInput) error {
	record := func(eventType, reason, message string) { w.event(pod, in.Container, eventType, reason, message) }
	secrets := w.pullSecrets(ctx, pod)
	root, failed := w.deps.Images.Ensure(ctx, in.spec, secrets, record)
	if failed != nil {
		return &failure{failed.Reason, failed.Message}
	}
	config, err := w.config(ctx, pod, in, root)
	if err != nil {
		record(v1.EventTypeWarning, "Failed", "Error: "+err.Error())
		return &failure{lifecycle.ReasonConfig, err.Error()}
	}
	if failed := w.mountedImages(ctx, pod, config.Mounts, secrets, record); failed != nil {
		return &failure{failed.Reason, failed.Message}
	}
	// What was granted since the sandbox was made counts for the pod too.
	if err := w.renewCgroup(ctx, pod); err != nil {
		return &failure{lifecycle.ReasonCreate, message(err)}
	}
	node, err := w.node(pod)
	if err != nil {
		return &failure{lifecycle.ReasonConfig, err.Error()}
	}
	sandbox := translate.Sandbox(node, pod, 0)
	created, err := w.deps.Runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: in.Sandbox, Config: config, SandboxConfig: sandbox})
	if err != nil {
		record(v1.EventTypeWarning, "Failed", "Error: "+message(err))
		return &failure{lifecycle.ReasonCreate, message(err)}
	}
	record(v1.EventTypeNormal, "Created", "Container created")
	if _, err := w.deps.Runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: created.ContainerId}); err != nil {
		record(v1.EventTypeWarning, "Failed", "Error: "+message(err))
		return &failure{lifecycle.ReasonRun, message(err)}
	}
	record(v1.EventTypeNormal, "Started", "Container started")
	return w.postStart(ctx, pod, in, created.ContainerId)
}

// mountedImages makes the images present that the container mounts as volumes.
func (w *Worker) mountedImages(ctx context.Context, pod *v1.Pod, mounts []*cri.Mount, secrets []*v1.Secret, record image.Record) *image.Failure {
	for _, m := range mounts {
		if m.Image == nil {
			continue
		}
		wanted := &v1.Container{Image: m.Image.UserSpecifiedImage}
		for i := range pod.Spec.Volumes {
			if v := pod.Spec.Volumes[i].Image; v != nil && v.Reference == wanted.Image {
				wanted.ImagePullPolicy = v.PullPolicy
			}
		}
		got, failed := w.deps.Images.Ensure(ctx, wanted, secrets, record)
		if failed != nil {
			return failed
		}
		m.Image.Image = got.Id
	}
	return nil
}

// postStart runs the hook. A container whose hook fails is ended.
func (w *Worker) postStart(ctx context.Context, pod *v1.Pod, in startInput, id string) error {
	if in.spec.Lifecycle == nil || in.spec.Lifecycle.PostStart == nil {
		return nil
	}
	err := w.hook(ctx, pod, in.spec, id, in.spec.Lifecycle.PostStart, 0)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	w.event(pod, in.Container, v1.EventTypeWarning, "FailedPostStartHook", "PostStartHook failed")
	grace := int64(30)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = *s
	}
	w.event(pod, in.Container, v1.EventTypeNormal, "Killing", "FailedPostStartHook")
	if _, err := w.deps.Runtime.StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id, Timeout: grace}); err != nil {
		return fmt.Errorf("stop the container whose postStart hook failed: %w", err)
	}
	return &failure{lifecycle.ReasonHook, err.Error()}
}

// config resolves all that the container refers to.
func (w *Worker) config(ctx context.Context, pod *v1.Pod, in startInput, root *cri.Image) (*cri.ContainerConfig, error) {
	if err := translate.VerifyNonRoot(pod, in.spec, root); err != nil {
		return nil, err
	}
	node, err := w.node(pod)
	if err != nil {
		return nil, err
	}
	env, values, err := translate.Environment(ctx, w.deps.Sources, pod, in.spec, translate.Values{
		PodIPs: in.ips, HostIPs: node.IPs, Allocatable: node.Allocatable,
	})
	if err != nil {
		return nil, err
	}
	mounts, err := w.deps.Volumes.Mounts(ctx, pod, in.spec, values)
	if err != nil {
		return nil, err
	}
	own, terminationFile, err := w.ownMounts(pod, in, mounts)
	if err != nil {
		return nil, err
	}
	mounts = append(mounts, own...)
	for _, m := range mounts {
		if m.Image == nil { // the runtime maps what it mounts itself
			m.UidMappings, m.GidMappings = translate.UserMappings(node), translate.UserMappings(node)
		}
	}
	return translate.Container(node, pod, in.spec, translate.ContainerInput{
		Attempt: in.Attempt, ImageRef: root.Id, Env: env, Values: values, Mounts: mounts,
		TerminationFile: terminationFile, TargetID: in.targetID, Granted: in.granted,
	}), nil
}

// ownMounts writes the files that every container gets (hosts, resolv.conf, termination message) and mounts them where the pod's
// volumes don't mount anything.
func (w *Worker) ownMounts(pod *v1.Pod, in startInput, taken []*cri.Mount) ([]*cri.Mount, string, error) {
	node := w.deps.Node()
	var mounts []*cri.Mount
	add := func(containerPath, hostPath string) {
		for _, m := range taken {
			if m.ContainerPath == containerPath {
				return
			}
		}
		mounts = append(mounts, &cri.Mount{ContainerPath: containerPath, HostPath: hostPath})
	}
	hostFile := ""
	if pod.Spec.HostNetwork {
		data, err := os.ReadFile("/etc/hosts")
		if err != nil {
			return nil, "", fmt.Errorf("the host's hosts file: %w", err)
		}
		hostFile = string(data)
	}
	files := []struct{ path, name, content string }{
		{"/etc/hosts", "etc-hosts", translate.Hosts(node, pod, in.ips, hostFile)},
		{"/etc/resolv.conf", "etc-resolv.conf", translate.DNS(node, pod).String()},
	}
	for _, f := range files {
		path := filepath.Join(w.podDir(node), f.name)
		if err := writeInPlace(path, f.content); err != nil {
			return nil, "", err
		}
		add(f.path, path)
	}
	path := in.spec.TerminationMessagePath
	if path == "" {
		return mounts, "", nil
	}
	dir := filepath.Join(w.podDir(node), "containers", in.Container)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", err
	}
	file := filepath.Join(dir, "termination-"+strconv.Itoa(int(in.Attempt)))
	// Any user of the container may write its message, whatever the umask of the agent is.
	if err := writeInPlace(file, ""); err != nil {
		return nil, "", err
	}
	if err := os.Chmod(file, 0o666); err != nil {
		return nil, "", err
	}
	add(path, file)
	return mounts, file, nil
}

// writeInPlace keeps the file's identity, for it may be mounted in running containers.
func writeInPlace(path, content string) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == content {
		return nil
	}
	return os.WriteFile(path, []byte(content), 0o644)
}

func (w *Worker) podDir(node *translate.Node) string {
	return filepath.Join(node.RootDir, "pods", string(w.uid))
}

// pullSecrets are the pull secrets that are there; missing ones only count when the pull fails.
func (w *Worker) pullSecrets(ctx context.Context, pod *v1.Pod) []*v1.Secret {
	var out []*v1.Secret
	for _, ref := range pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		s, err := w.deps.Sources.Secret(ctx, pod.Namespace, ref.Name)
		if err != nil {
			w.event(pod, "", v1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
				fmt.Sprintf("Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", ref.Name))
			continue
		}
		out = append(out, s)
	}
	return out
}

func message(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}
