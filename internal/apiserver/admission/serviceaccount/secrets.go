package serviceaccount

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// limitAnnotation on an account says that its pods may use only the secrets that it lists.
const limitAnnotation = "kubernetes.io/enforce-mountable-secrets"

func limitsSecrets(account *corev1.ServiceAccount) bool {
	limited, err := strconv.ParseBool(account.Annotations[limitAnnotation])
	return err == nil && limited
}

// limitSecrets refuses a pod that uses a secret which its account does not list.
func limitSecrets(account *corev1.ServiceAccount, pod *corev1.PodSpec) error {
	mountable := mountable(account)
	for i := range pod.Volumes {
		if source := pod.Volumes[i].Secret; source != nil && !mountable.Has(source.SecretName) {
			return fmt.Errorf("volume with secret.secretName=%q is not allowed because service account %s does not reference that secret", source.SecretName, account.Name)
		}
	}
	for _, group := range []struct {
		word       string
		containers []corev1.Container
	}{{"init container", pod.InitContainers}, {"container", pod.Containers}} {
		for i := range group.containers {
			if err := limitEnvironment(account, mountable, group.word, &group.containers[i]); err != nil {
				return err
			}
		}
	}
	for i, secret := range pod.ImagePullSecrets {
		if !slices.Contains(account.ImagePullSecrets, secret) {
			return fmt.Errorf("imagePullSecrets[%d].name=%q is not allowed because service account %s does not reference that imagePullSecret", i, secret.Name, account.Name)
		}
	}
	return nil
}

// limitEphemeralSecrets is for containers that are added to a pod which was admitted.
func limitEphemeralSecrets(account *corev1.ServiceAccount, pod *corev1.PodSpec) error {
	for i := range pod.EphemeralContainers {
		container := corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
		if err := limitEnvironment(account, mountable(account), "ephemeral container", &container); err != nil {
			return err
		}
	}
	return nil
}

func mountable(account *corev1.ServiceAccount) sets.Set[string] {
	names := sets.New[string]()
	for _, secret := range account.Secrets {
		names.Insert(secret.Name)
	}
	return names
}

func limitEnvironment(account *corev1.ServiceAccount, mountable sets.Set[string], word string, c *corev1.Container) error {
	for _, env := range c.Env {
		if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil && !mountable.Has(env.ValueFrom.SecretKeyRef.Name) {
			return fmt.Errorf("%s %s with envVar %s referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				word, c.Name, env.Name, env.ValueFrom.SecretKeyRef.Name, account.Name)
		}
	}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil && !mountable.Has(from.SecretRef.Name) {
			return fmt.Errorf("%s %s with envFrom referencing secret.secretName=%q is not allowed because service account %s does not reference that secret",
				word, c.Name, from.SecretRef.Name, account.Name)
		}
	}
	return nil
}

// usesSecrets tells whether a pod refers to any secret.
func usesSecrets(pod *corev1.PodSpec) bool {
	if len(pod.ImagePullSecrets) > 0 || slices.ContainsFunc(pod.Volumes, volumeUsesSecrets) {
		return true
	}
	containers := slices.Concat(pod.InitContainers, pod.Containers)
	for i := range pod.EphemeralContainers {
		containers = append(containers, corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon))
	}
	return slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil }) ||
			slices.ContainsFunc(c.EnvFrom, func(f corev1.EnvFromSource) bool { return f.SecretRef != nil })
	})
}

func volumeUsesSecrets(v corev1.Volume) bool {
	switch {
	case v.Secret != nil, v.AzureFile != nil:
		return true
	case v.Projected != nil:
		return slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.Secret != nil })
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef != nil
	case v.CephFS != nil:
		return v.CephFS.SecretRef != nil
	case v.Cinder != nil:
		return v.Cinder.SecretRef != nil
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef != nil
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef != nil
	case v.RBD != nil:
		return v.RBD.SecretRef != nil
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef != nil
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef != nil
	}
	return false
}
