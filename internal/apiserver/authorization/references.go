package authorization

import corev1 "k8s.io/api/core/v1"

// references reports whether a pod refers to a Secret, ConfigMap or ServiceAccount of its namespace.
func references(pod *corev1.Pod, resource, name string) bool {
	switch resource {
	case "secrets":
		return refersToSecret(pod, name)
	case "configmaps":
		return refersToConfigMap(pod, name)
	case "serviceaccounts":
		return pod.Spec.ServiceAccountName == name
	}
	return false
}

func refersToSecret(pod *corev1.Pod, name string) bool {
	for _, s := range pod.Spec.ImagePullSecrets {
		if s.Name == name {
			return true
		}
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Secret != nil && v.Secret.SecretName == name || v.CSI != nil && v.CSI.NodePublishSecretRef != nil && v.CSI.NodePublishSecretRef.Name == name {
			return true
		}
		for _, source := range projections(v) {
			if source.Secret != nil && source.Secret.Name == name {
				return true
			}
		}
	}
	return anyEnvironment(pod, func(from *corev1.EnvFromSource, value *corev1.EnvVarSource) bool {
		return from != nil && from.SecretRef != nil && from.SecretRef.Name == name ||
			value != nil && value.SecretKeyRef != nil && value.SecretKeyRef.Name == name
	})
}

func refersToConfigMap(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil && v.ConfigMap.Name == name {
			return true
		}
		for _, source := range projections(v) {
			if source.ConfigMap != nil && source.ConfigMap.Name == name {
				return true
			}
		}
	}
	return anyEnvironment(pod, func(from *corev1.EnvFromSource, value *corev1.EnvVarSource) bool {
		return from != nil && from.ConfigMapRef != nil && from.ConfigMapRef.Name == name ||
			value != nil && value.ConfigMapKeyRef != nil && value.ConfigMapKeyRef.Name == name
	})
}

func projections(v *corev1.Volume) []corev1.VolumeProjection {
	if v.Projected == nil {
		return nil
	}
	return v.Projected.Sources
}

// anyEnvironment calls f with each source of environment variables of each container, until one is it.
func anyEnvironment(pod *corev1.Pod, f func(*corev1.EnvFromSource, *corev1.EnvVarSource) bool) bool {
	check := func(from []corev1.EnvFromSource, env []corev1.EnvVar) bool {
		for i := range from {
			if f(&from[i], nil) {
				return true
			}
		}
		for i := range env {
			if env[i].ValueFrom != nil && f(nil, env[i].ValueFrom) {
				return true
			}
		}
		return false
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if check(containers[i].EnvFrom, containers[i].Env) {
				return true
			}
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if c := &pod.Spec.EphemeralContainers[i]; check(c.EnvFrom, c.Env) {
			return true
		}
	}
	return false
}
