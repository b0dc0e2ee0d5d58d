package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// projectedTokenSeconds is how long a service-account token lasts that names no time.
const projectedTokenSeconds = 60 * 60

func defaultVolume(v *corev1.Volume) {
	if v.VolumeSource == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.HostPath != nil && v.HostPath.Type == nil:
		v.HostPath.Type = ptr.To(corev1.HostPathUnset)
	case v.Secret != nil:
		setPointer(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		setPointer(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		setPointer(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultDownward(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.ISCSI != nil:
		set(&v.ISCSI.ISCSIInterface, "default")
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		DefaultClaim(&v.Ephemeral.VolumeClaimTemplate.Spec)
	case v.Image != nil:
		set(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	}
}

// DefaultClaim fills in the defaults of a claim for a volume.
func DefaultClaim(spec *corev1.PersistentVolumeClaimSpec) {
	setPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	setPointer(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		source := &p.Sources[i]
		if source.DownwardAPI != nil {
			defaultDownward(source.DownwardAPI.Items)
		}
		if source.ServiceAccountToken != nil {
			setPointer(&source.ServiceAccountToken.ExpirationSeconds, projectedTokenSeconds)
		}
	}
}

func defaultDownward(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		if items[i].FieldRef != nil {
			set(&items[i].FieldRef.APIVersion, "v1")
		}
	}
}
