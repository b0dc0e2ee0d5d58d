package volume

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	v1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// Mounts returns the mounts of one container. env are its variables, for subPathExpr. Mounts of images name the image as the manifest does:
// it is for the caller to have it pulled.
func (m *Manager) Mounts(ctx context.Context, pod *v1.Pod, c *v1.Container, env map[string]string) ([]*cri.Mount, error) {
	var out []*cri.Mount
	for i := range c.VolumeMounts {
		mount, err := m.mount(ctx, pod, c, i, env)
		if err != nil {
			return nil, fmt.Errorf("volumeMount %s of container %s: %w", c.VolumeMounts[i].MountPath, c.Name, err)
		}
		out = append(out, mount)
	}
	return out, nil
}

func (m *Manager) mount(ctx context.Context, pod *v1.Pod, c *v1.Container, i int, env map[string]string) (*cri.Mount, error) {
	vm := &c.VolumeMounts[i]
	vol := find(pod, vm.Name)
	if vol == nil {
		return nil, fmt.Errorf("the pod has no volume %q", vm.Name)
	}
	sub, err := subPath(vm, env)
	if err != nil {
		return nil, err
	}
	if vol.Image != nil {
		spec := &cri.ImageSpec{Image: vol.Image.Reference, UserSpecifiedImage: vol.Image.Reference}
		return &cri.Mount{ContainerPath: containerPath(vm.MountPath), Image: spec, ImageSubPath: sub, Readonly: true}, nil
	}
	path, err := m.path(ctx, pod, vol)
	if err != nil {
		return nil, err
	}
	if sub != "" {
		target := filepath.Join(m.podDir(pod.UID), "volume-subpaths", vol.Name, c.Name, strconv.Itoa(i))
		if path, err = pinSubPath(path, sub, target, fsGroup(pod)); err != nil {
			return nil, fmt.Errorf("failed to prepare subPath %q: %w", sub, err)
		}
	}
	recursive := vm.RecursiveReadOnly != nil && *vm.RecursiveReadOnly != v1.RecursiveReadOnlyDisabled
	claimReadOnly := vol.PersistentVolumeClaim != nil && vol.PersistentVolumeClaim.ReadOnly
	written := vol.ConfigMap != nil || vol.Secret != nil || vol.DownwardAPI != nil || vol.Projected != nil
	return &cri.Mount{
		ContainerPath:     containerPath(vm.MountPath),
		HostPath:          path,
		Readonly:          vm.ReadOnly || claimReadOnly || written,
		RecursiveReadOnly: recursive,
		Propagation:       propagation(vm.MountPropagation),
	}, nil
}

func containerPath(path string) string {
	if !filepath.IsAbs(path) {
		return "/" + path
	}
	return path
}

func propagation(p *v1.MountPropagationMode) cri.MountPropagation {
	if p == nil {
		return cri.MountPropagation_PROPAGATION_PRIVATE
	}
	switch *p {
	case v1.MountPropagationBidirectional:
		return cri.MountPropagation_PROPAGATION_BIDIRECTIONAL
	case v1.MountPropagationHostToContainer:
		return cri.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	}
	return cri.MountPropagation_PROPAGATION_PRIVATE
}

// subPath is the part of the volume that is mounted. References of subPathExpr must all resolve.
func subPath(vm *v1.VolumeMount, env map[string]string) (string, error) {
	sub := vm.SubPath
	if vm.SubPathExpr != "" {
		var missing []string
		sub = translate.Expand(vm.SubPathExpr, func(name string) (string, bool) {
			v, ok := env[name]
			if !ok {
				missing = append(missing, name)
			}
			return v, ok
		})
		if len(missing) > 0 {
			return "", fmt.Errorf("subPathExpr %q refers to the missing variables %q", vm.SubPathExpr, missing)
		}
	}
	if sub == "" {
		return "", nil
	}
	if !filepath.IsLocal(filepath.FromSlash(sub)) {
		return "", fmt.Errorf("subPath %q must be relative and must not contain '..'", sub)
	}
	return sub, nil
}

func find(pod *v1.Pod, name string) *v1.Volume {
	for i := range pod.Spec.Volumes {
		if pod.Spec.Volumes[i].Name == name {
			return &pod.Spec.Volumes[i]
		}
	}
	return nil
}
