package node

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// refers reports whether a pod refers to an object of its namespace.
func refers(pod *corev1.Pod, resource, name string) bool {
	switch resource {
	case "secrets":
		return refersToSecret(pod, name)
	case "configmaps":
		return refersToConfigMap(pod, name)
	case "serviceaccounts":
		return pod.Spec.ServiceAccountName == name
	case "persistentvolumeclaims":
		return slices.Contains(claims(pod), name)
	case "resourceclaims":
		return refersToResourceClaim(pod, name)
	}
	return false
}

// claims are the names of the claims that a pod uses, those that are made for it included.
func claims(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			names = append(names, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			names = append(names, pod.Name+"-"+v.Name)
		}
	}
	return names
}

func refersToResourceClaim(pod *corev1.Pod, name string) bool {
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil && *c.ResourceClaimName == name {
			return true
		}
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil && *s.ResourceClaimName == name {
			return true
		}
	}
	extended := pod.Status.ExtendedResourceClaimStatus
	return extended != nil && extended.ResourceClaimName == name
}

func refersToSecret(pod *corev1.Pod, name string) bool {
	for _, s := range pod.Spec.ImagePullSecrets {
		if s.Name == name {
			return true
		}
	}
	for i := range pod.Spec.Volumes {
		if slices.Contains(secretsOf(&pod.Spec.Volumes[i].VolumeSource), name) {
			return true
		}
	}
	return anyEnvironment(pod, func(from *corev1.EnvFromSource, value *corev1.EnvVarSource) bool {
		return from != nil && from.SecretRef != nil && from.SecretRef.Name == name ||
			value != nil && value.SecretKeyRef != nil && value.SecretKeyRef.Name == name
	})
}

// secretsOf are the Secrets of its pod's namespace that a volume needs.
func secretsOf(v *corev1.VolumeSource) []string {
	var names []string
	local := func(ref *corev1.LocalObjectReference) {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	switch {
	case v.Secret != nil:
		names = append(names, v.Secret.SecretName)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.Secret != nil {
				names = append(names, source.Secret.Name)
			}
		}
	case v.CSI != nil:
		local(v.CSI.NodePublishSecretRef)
	case v.FlexVolume != nil:
		local(v.FlexVolume.SecretRef)
	case v.ISCSI != nil:
		local(v.ISCSI.SecretRef)
	case v.RBD != nil:
		local(v.RBD.SecretRef)
	case v.CephFS != nil:
		local(v.CephFS.SecretRef)
	case v.ScaleIO != nil:
		local(v.ScaleIO.SecretRef)
	case v.StorageOS != nil:
		local(v.StorageOS.SecretRef)
	case v.Cinder != nil:
		local(v.Cinder.SecretRef)
	case v.AzureFile != nil:
		names = append(names, v.AzureFile.SecretName)
	}
	return names
}

// volumeRefersToSecret: of a CSI driver's secrets the node needs those of its own calls.
func volumeRefersToSecret(volume *corev1.PersistentVolume, namespace, name string) bool {
	s := &volume.Spec.PersistentVolumeSource
	var refs []*corev1.SecretReference
	switch {
	case s.CSI != nil:
		refs = []*corev1.SecretReference{s.CSI.NodeStageSecretRef, s.CSI.NodePublishSecretRef, s.CSI.NodeExpandSecretRef}
	case s.FlexVolume != nil:
		refs = append(refs, s.FlexVolume.SecretRef)
	case s.ISCSI != nil:
		refs = append(refs, s.ISCSI.SecretRef)
	case s.RBD != nil:
		refs = append(refs, s.RBD.SecretRef)
	case s.CephFS != nil:
		refs = append(refs, s.CephFS.SecretRef)
	case s.ScaleIO != nil:
		refs = append(refs, s.ScaleIO.SecretRef)
	case s.Cinder != nil:
		refs = append(refs, s.Cinder.SecretRef)
	case s.StorageOS != nil:
		if r := s.StorageOS.SecretRef; r != nil {
			refs = append(refs, &corev1.SecretReference{Namespace: r.Namespace, Name: r.Name})
		}
	case s.AzureFile != nil:
		r := &corev1.SecretReference{Name: s.AzureFile.SecretName}
		if s.AzureFile.SecretNamespace != nil {
			r.Namespace = *s.AzureFile.SecretNamespace
		}
		refs = append(refs, r)
	}
	return slices.ContainsFunc(refs, func(r *corev1.SecretReference) bool {
		if r == nil || r.Name != name {
			return false
		}
		// Without a namespace it is the claim's.
		return r.Namespace == namespace || r.Namespace == "" && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.Namespace == namespace
	})
}

func refersToConfigMap(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil && v.ConfigMap.Name == name {
			return true
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
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
