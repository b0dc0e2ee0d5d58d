package worker

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
	"github.com/bayplan/bayplan/internal/node/logs"
	"github.com/bayplan/bayplan/internal/node/translate"
)

// observe asks the runtime for all that it has of the pod.
func (w *Worker) observe(ctx context.Context) (lifecycle.Observed, error) {
	var o lifecycle.Observed
	selector := map[string]string{translate.LabelPodUID: string(w.uid)}
	sandboxes, err := w.deps.Runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: selector}})
	if err != nil {
		return o, fmt.Errorf("list sandboxes: %w", err)
	}
	for _, s := range sandboxes.Items {
		if err := w.observeSandbox(ctx, &o, s); err != nil {
			return o, err
		}
	}
	containers, err := w.deps.Runtime.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: selector}})
	if err != nil {
		return o, fmt.Errorf("list containers: %w", err)
	}
	for _, c := range containers.Containers {
		if err := w.observeContainer(ctx, &o, c); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (w *Worker) observeSandbox(ctx context.Context, o *lifecycle.Observed, s *cri.PodSandbox) error {
	resp, err := w.deps.Runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: s.Id})
	if status.Code(err) == codes.NotFound {
		return nil // removed in between
	}
	if err != nil {
		return fmt.Errorf("status of sandbox %s: %w", s.Id, err)
	}
	st := resp.Status
	out := lifecycle.Sandbox{
		ID: st.Id, Ready: st.State == cri.PodSandboxState_SANDBOX_READY, Attempt: st.GetMetadata().GetAttempt(), CreatedAt: time.Unix(0, st.CreatedAt),
	}
	if n := st.Network; n != nil && n.Ip != "" {
		out.IPs = append(out.IPs, n.Ip)
		for _, more := range n.AdditionalIps {
			out.IPs = append(out.IPs, more.Ip)
		}
	}
	o.Sandboxes = append(o.Sandboxes, out)
	return nil
}

func (w *Worker) observeContainer(ctx context.Context, o *lifecycle.Observed, c *cri.Container) error {
	resp, err := w.deps.Runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.Id})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("status of container %s: %w", c.Id, err)
	}
	st := resp.Status
	meta := translate.MetaOf(st.Labels, st.Annotations)
	out := lifecycle.Container{
		ID: st.Id, Name: st.GetMetadata().GetName(), SandboxID: c.PodSandboxId, Attempt: int32(st.GetMetadata().GetAttempt()),
		State: states[st.State], CreatedAt: instant(st.CreatedAt), StartedAt: instant(st.StartedAt), FinishedAt: instant(st.FinishedAt),
		ExitCode: st.ExitCode, Reason: st.Reason, Message: st.Message, Image: st.GetImage().GetUserSpecifiedImage(), ImageID: st.ImageRef,
		SpecHash: meta.Hash, StopSignal: translate.StopSignalOf(st.StopSignal), User: user(st.User), Resources: w.enforced(meta.Container, st.Resources),
	}
	if out.Image == "" {
		out.Image = st.GetImage().GetImage()
	}
	if out.State == lifecycle.Exited {
		out.Message = w.terminationMessage(st, meta)
	}
	o.Containers = append(o.Containers, out)
	return nil
}

var states = map[cri.ContainerState]lifecycle.State{
	cri.ContainerState_CONTAINER_CREATED: lifecycle.Created, cri.ContainerState_CONTAINER_RUNNING: lifecycle.Running,
	cri.ContainerState_CONTAINER_EXITED: lifecycle.Exited, cri.ContainerState_CONTAINER_UNKNOWN: lifecycle.Unknown,
}

func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds)
}

func user(u *cri.ContainerUser) *v1.ContainerUser {
	l := u.GetLinux()
	if l == nil {
		return nil
	}
	return &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: l.Uid, GID: l.Gid, SupplementalGroups: l.SupplementalGroups}}
}

// enforced is what the runtime says it enforces, in the words of the API. CPU shares and quota are turned back into cores; where the
// spec's value gives the same number, the spec's value is kept, so that rounding doesn't show.
func (w *Worker) enforced(name string, r *cri.ContainerResources) *v1.ResourceRequirements {
	l := r.GetLinux()
	c := containerSpec(w.Pod(), name)
	if l == nil || c == nil {
		return nil
	}
	spec := c.Resources
	if granted, ok := w.memory.Allocated[name]; ok {
		spec = granted
	}
	out := spec.DeepCopy()
	if _, set := out.Limits[v1.ResourceCPU]; set && l.CpuQuota > 0 && l.CpuPeriod > 0 && translate.Quota(out.Limits.Cpu().MilliValue()) != l.CpuQuota {
		out.Limits[v1.ResourceCPU] = *resource.NewMilliQuantity(l.CpuQuota*1000/l.CpuPeriod, resource.DecimalSI)
	}
	if _, set := out.Requests[v1.ResourceCPU]; set && l.CpuShares > 0 && translate.Shares(out.Requests.Cpu().MilliValue()) != l.CpuShares {
		out.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity((l.CpuShares*1000+1023)/1024, resource.DecimalSI)
	}
	if _, set := out.Limits[v1.ResourceMemory]; set && l.MemoryLimitInBytes > 0 && out.Limits.Memory().Value() != l.MemoryLimitInBytes {
		out.Limits[v1.ResourceMemory] = *resource.NewQuantity(l.MemoryLimitInBytes, resource.BinarySI)
	}
	return out
}

// The limits of termination messages: a file may hold 4096 bytes, the log's end 2048 bytes or 80 lines.
const (
	maxMessageFile = 4096
	maxMessageLog  = 2048
	maxMessageLine = 80
)

// terminationMessage is what the container left in its termination message file or, if the policy says so and it failed, at the end of its log.
func (w *Worker) terminationMessage(st *cri.ContainerStatus, meta translate.Meta) string {
	if message, ok := w.messages[st.Id]; ok {
		return message
	}
	message := st.Message
	if text := readHead(meta.TerminationFile, maxMessageFile); text != "" {
		message = text
	} else if st.ExitCode != 0 && meta.TerminationPolicy == v1.TerminationMessageFallbackToLogsOnError && st.Reason != "OOMKilled" {
		if tail, err := logs.Tail(st.LogPath, maxMessageLine, maxMessageLog); err == nil && tail != "" {
			message = tail
		}
	}
	w.messages[st.Id] = message
	return message
}

func readHead(path string, limit int) string {
	if path == "" {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, limit)
	n, _ := f.Read(buf)
	return string(buf[:n])
}

func containerSpec(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if e := &pod.Spec.EphemeralContainers[i]; e.Name == name {
			return (*v1.Container)(&e.EphemeralContainerCommon)
		}
	}
	return nil
}
