package volume

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// file is one file of a payload.
type file struct {
	data []byte
	mode int32
}

// files are a payload by path, relative to the volume.
type files map[string]file

const defaultMode int32 = 0o644

// payload is what a volume made of API objects contains.
func (m *Manager) payload(ctx context.Context, pod *v1.Pod, s *v1.VolumeSource) (files, error) {
	out := files{}
	switch {
	case s.ConfigMap != nil:
		return out, m.configMap(ctx, out, pod, s.ConfigMap.Name, s.ConfigMap.Items, mode(s.ConfigMap.DefaultMode), isTrue(s.ConfigMap.Optional))
	case s.Secret != nil:
		return out, m.secret(ctx, out, pod, s.Secret.SecretName, s.Secret.Items, mode(s.Secret.DefaultMode), isTrue(s.Secret.Optional))
	case s.DownwardAPI != nil:
		return out, m.downward(out, pod, s.DownwardAPI.Items, mode(s.DownwardAPI.DefaultMode))
	}
	for i := range s.Projected.Sources {
		if err := m.project(ctx, out, pod, &s.Projected.Sources[i], mode(s.Projected.DefaultMode)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// project adds one source of a projected volume; a later source replaces files of an earlier one.
func (m *Manager) project(ctx context.Context, out files, pod *v1.Pod, p *v1.VolumeProjection, mode int32) error {
	switch {
	case p.ConfigMap != nil:
		return m.configMap(ctx, out, pod, p.ConfigMap.Name, p.ConfigMap.Items, mode, isTrue(p.ConfigMap.Optional))
	case p.Secret != nil:
		return m.secret(ctx, out, pod, p.Secret.Name, p.Secret.Items, mode, isTrue(p.Secret.Optional))
	case p.DownwardAPI != nil:
		return m.downward(out, pod, p.DownwardAPI.Items, mode)
	case p.ServiceAccountToken != nil:
		text, err := m.token(ctx, pod, p.ServiceAccountToken)
		if err != nil {
			return err
		}
		out[p.ServiceAccountToken.Path] = file{[]byte(text), tokenMode(pod, mode)}
		return nil
	case p.ClusterTrustBundle != nil:
		text, err := m.trust(ctx, p.ClusterTrustBundle)
		if err != nil {
			return err
		}
		out[p.ClusterTrustBundle.Path] = file{text, mode}
		return nil
	case p.PodCertificate != nil:
		return m.podCertificate(ctx, out, pod, p.PodCertificate, tokenMode(pod, mode))
	}
	return fmt.Errorf("a projected volume has a source without content")
}

func (m *Manager) configMap(ctx context.Context, out files, pod *v1.Pod, name string, items []v1.KeyToPath, mode int32, optional bool) error {
	object, err := m.sources.ConfigMap(ctx, pod.Namespace, name)
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return notFound("configmap", name, err)
	}
	data := make(map[string][]byte, len(object.Data)+len(object.BinaryData))
	for k, v := range object.Data {
		data[k] = []byte(v)
	}
	for k, v := range object.BinaryData {
		data[k] = v
	}
	return pick(out, data, items, mode, optional, "configmap references non-existent config key: ")
}

func (m *Manager) secret(ctx context.Context, out files, pod *v1.Pod, name string, items []v1.KeyToPath, mode int32, optional bool) error {
	object, err := m.sources.Secret(ctx, pod.Namespace, name)
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return notFound("secret", name, err)
	}
	return pick(out, object.Data, items, mode, optional, "references non-existent secret key: ")
}

func notFound(kind, name string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %q not found", kind, name)
	}
	return err
}

// pick takes all keys, or those that items name.
func pick(out files, data map[string][]byte, items []v1.KeyToPath, mode int32, optional bool, missing string) error {
	if len(items) == 0 {
		for k, v := range data {
			out[k] = file{v, mode}
		}
		return nil
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			if optional {
				continue
			}
			return fmt.Errorf("%s%s", missing, item.Key)
		}
		f := file{value, mode}
		if item.Mode != nil {
			f.mode = *item.Mode
		}
		out[item.Path] = f
	}
	return nil
}

func (m *Manager) downward(out files, pod *v1.Pod, items []v1.DownwardAPIVolumeFile, mode int32) error {
	node := m.node()
	for _, item := range items {
		var text string
		var err error
		switch {
		case item.FieldRef != nil:
			text, err = translate.Field(pod, item.FieldRef.FieldPath, nil, node.IPs)
		case item.ResourceFieldRef != nil:
			c := translate.FindContainer(pod, item.ResourceFieldRef.ContainerName)
			if c == nil {
				return fmt.Errorf("downward API file %s: the pod has no container %q", item.Path, item.ResourceFieldRef.ContainerName)
			}
			text, err = translate.ResourceField(c, item.ResourceFieldRef, node.Allocatable)
		}
		if err != nil {
			return fmt.Errorf("downward API file %s: %w", item.Path, err)
		}
		f := file{[]byte(text), mode}
		if item.Mode != nil {
			f.mode = *item.Mode
		}
		out[item.Path] = f
	}
	return nil
}

func mode(m *int32) int32 {
	if m == nil {
		return defaultMode
	}
	return *m
}

func isTrue(b *bool) bool { return b != nil && *b }
