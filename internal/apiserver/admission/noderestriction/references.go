package noderestriction

import corev1 "k8s.io/api/core/v1"

// refersTo names the kind of objects that a pod refers to; "" when it refers to none, as a pod must that a node makes up.
func refersTo(spec *corev1.PodSpec) string {
	switch {
	case spec.ServiceAccountName != "":
		return "serviceaccounts"
	case len(spec.ImagePullSecrets) > 0:
		return "secrets"
	case len(spec.ResourceClaims) > 0:
		return "resourceclaims"
	}
	if what := environmentRefersTo(spec); what != "" {
		return what
	}
	for i := range spec.Volumes {
		if what := volumeRefersTo(&spec.Volumes[i].VolumeSource); what != "" {
			return what
		}
	}
	return ""
}

func environmentRefersTo(spec *corev1.PodSpec) string {
	containers := append(append([]corev1.Container(nil), spec.InitContainers...), spec.Containers...)
	for i := range spec.EphemeralContainers {
		containers = append(containers, corev1.Container(spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
	for i := range containers {
		for _, from := range containers[i].EnvFrom {
			switch {
			case from.SecretRef != nil:
				return "secrets"
			case from.ConfigMapRef != nil:
				return "configmaps"
			}
		}
		for _, env := range containers[i].Env {
			switch {
			case env.ValueFrom == nil:
			case env.ValueFrom.SecretKeyRef != nil:
				return "secrets"
			case env.ValueFrom.ConfigMapKeyRef != nil:
				return "configmaps"
			}
		}
	}
	return ""
}

// volumeRefersTo lists what is known to need the API, and the Secrets that volumes are mounted with.
func volumeRefersTo(v *corev1.VolumeSource) string {
	secret := func(ref *corev1.LocalObjectReference) string {
		if ref == nil {
			return ""
		}
		return "secrets"
	}
	switch {
	case v.ConfigMap != nil:
		return "configmaps (via configmap volumes)"
	case v.Secret != nil:
		return "secrets (via secret volumes)"
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return "persistentvolumeclaims"
	case v.Ephemeral != nil:
		return "persistentvolumeclaims (via ephemeral volumes)"
	case v.AzureFile != nil:
		return "secrets (via azureFile volumes)"
	case v.Projected != nil:
		return projectionRefersTo(v.Projected)
	case v.CephFS != nil:
		return secret(v.CephFS.SecretRef)
	case v.Cinder != nil:
		return secret(v.Cinder.SecretRef)
	case v.FlexVolume != nil:
		return secret(v.FlexVolume.SecretRef)
	case v.RBD != nil:
		return secret(v.RBD.SecretRef)
	case v.ScaleIO != nil:
		return secret(v.ScaleIO.SecretRef)
	case v.ISCSI != nil:
		return secret(v.ISCSI.SecretRef)
	case v.StorageOS != nil:
		return secret(v.StorageOS.SecretRef)
	}
	return ""
}

// projectionRefersTo allows the pod's own fields alone.
func projectionRefersTo(p *corev1.ProjectedVolumeSource) string {
	for _, s := range p.Sources {
		switch {
		case s.ConfigMap != nil:
			return "configmaps (via projected volumes)"
		case s.Secret != nil:
			return "secrets (via projected volumes)"
		case s.ServiceAccountToken != nil:
			return "serviceaccounts (via projected volumes)"
		case s.ClusterTrustBundle != nil:
			return "clustertrustbundles"
		case s.PodCertificate != nil:
			return "podcertificates"
		case s.DownwardAPI == nil:
			return "an unknown source of a projected volume"
		}
	}
	return ""
}
