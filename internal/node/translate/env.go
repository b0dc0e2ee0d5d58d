package translate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Sources gives the objects that a pod refers to. Missing ones are NotFound errors of the API.
type Sources interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)
	// Services returns the services of a namespace.
	Services(ctx context.Context, namespace string) ([]*v1.Service, error)
}

// Values are a container's environment and what its fields may refer to.
type Values struct {
	PodIPs, HostIPs []string
	Allocatable     v1.ResourceList
}

// environment is a list of variables in the order in which they were set; a later value replaces an earlier one in place.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

// Environment resolves a container's variables: those of services, then envFrom, then env, the later over the earlier. $(NAME) refers to
// variables before it.
func Environment(ctx context.Context, src Sources, pod *v1.Pod, c *v1.Container, v Values) ([]*cri.KeyValue, map[string]string, error) {
	e := &environment{values: map[string]string{}}
	services, err := ServiceVariables(ctx, src, pod)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		e.set(name, services[name])
	}
	for i := range c.EnvFrom {
		if err := e.from(ctx, src, pod.Namespace, &c.EnvFrom[i]); err != nil {
			return nil, nil, err
		}
	}
	for i := range c.Env {
		if err := e.variable(ctx, src, pod, c, &c.Env[i], v); err != nil {
			return nil, nil, err
		}
	}
	list := make([]*cri.KeyValue, 0, len(e.names))
	for _, name := range e.names {
		list = append(list, &cri.KeyValue{Key: name, Value: []byte(e.values[name])})
	}
	return list, e.values, nil
}

// from takes over all keys of a ConfigMap or Secret.
func (e *environment) from(ctx context.Context, src Sources, namespace string, f *v1.EnvFromSource) error {
	var data map[string]string
	var err error
	optional := false
	switch {
	case f.ConfigMapRef != nil:
		optional = isTrue(f.ConfigMapRef.Optional)
		data, err = configMapData(ctx, src, namespace, f.ConfigMapRef.Name)
	case f.SecretRef != nil:
		optional = isTrue(f.SecretRef.Optional)
		data, err = secretData(ctx, src, namespace, f.SecretRef.Name)
	}
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return nil
		}
		return short(err)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		name := f.Prefix + key
		if name != "" && !strings.Contains(name, "=") {
			e.set(name, data[key])
		}
	}
	return nil
}

func (e *environment) variable(ctx context.Context, src Sources, pod *v1.Pod, c *v1.Container, env *v1.EnvVar, v Values) error {
	if env.ValueFrom == nil {
		e.set(env.Name, Expand(env.Value, e.lookup))
		return nil
	}
	value, found, err := reference(ctx, src, pod, c, env.ValueFrom, v)
	if err != nil {
		return err
	}
	if found {
		e.set(env.Name, value)
	}
	return nil
}

func (e *environment) lookup(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

// reference is the value of a variable's valueFrom; found is false for an optional one that isn't there.
func reference(ctx context.Context, src Sources, pod *v1.Pod, c *v1.Container, from *v1.EnvVarSource, v Values) (value string, found bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = Field(pod, from.FieldRef.FieldPath, v.PodIPs, v.HostIPs)
		return value, err == nil, err
	case from.ResourceFieldRef != nil:
		target := c
		if name := from.ResourceFieldRef.ContainerName; name != "" {
			if target = FindContainer(pod, name); target == nil {
				return "", false, fmt.Errorf("container %s not found", name)
			}
		}
		value, err = ResourceField(target, from.ResourceFieldRef, v.Allocatable)
		return value, err == nil, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := configMapData(ctx, src, pod.Namespace, ref.Name)
		return key(data, err, ref.Key, isTrue(ref.Optional), "ConfigMap", pod.Namespace, ref.Name)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := secretData(ctx, src, pod.Namespace, ref.Name)
		return key(data, err, ref.Key, isTrue(ref.Optional), "Secret", pod.Namespace, ref.Name)
	}
	return "", false, fmt.Errorf("unsupported valueFrom: %s", from.String())
}

func key(data map[string]string, err error, key string, optional bool, kind, namespace, name string) (string, bool, error) {
	if err != nil {
		if optional && apierrors.IsNotFound(err) {
			return "", false, nil
		}
		return "", false, short(err)
	}
	value, ok := data[key]
	if !ok && !optional {
		return "", false, fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
	}
	return value, ok, nil
}

func configMapData(ctx context.Context, src Sources, namespace, name string) (map[string]string, error) {
	m, err := src.ConfigMap(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return m.Data, nil
}

func secretData(ctx context.Context, src Sources, namespace, name string) (map[string]string, error) {
	s, err := src.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	data := make(map[string]string, len(s.Data))
	for k, v := range s.Data {
		data[k] = string(v)
	}
	return data, nil
}

// short is how a missing object is reported: configmap "name" not found.
func short(err error) error {
	if s, ok := err.(apierrors.APIStatus); ok && apierrors.IsNotFound(err) && s.Status().Details != nil {
		d := s.Status().Details
		return fmt.Errorf("%s %q not found", strings.TrimSuffix(d.Kind, "s"), d.Name)
	}
	return err
}

// FindContainer returns the init or ordinary container of that name, nil when there is none.
func FindContainer(pod *v1.Pod, name string) *v1.Container {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
