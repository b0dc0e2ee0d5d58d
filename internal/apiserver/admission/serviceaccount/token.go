package serviceaccount

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

const (
	// volumePrefix begins the name of the volume with the token.
	volumePrefix = "kube-api-access-"
	// mountPath is where clients in a pod look for the token.
	mountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenSeconds is how long a token is good for. A token of exactly this age is known to come from here.
	tokenSeconds = 60*60 + 7
	// rootCertificates is the ConfigMap of every namespace with the certificate that the API server's is signed by.
	rootCertificates = "kube-root-ca.crt"
)

// automounts: the pod decides, else the account, else yes.
func automounts(pod *corev1.Pod, account *corev1.ServiceAccount) bool {
	if pod.Spec.AutomountServiceAccountToken != nil {
		return *pod.Spec.AutomountServiceAccountToken
	}
	return ptr.Deref(account.AutomountServiceAccountToken, true)
}

// mountToken mounts the volume with the token into each container that has nothing of its own at that path.
func (p *Plugin) mountToken(pod *corev1.PodSpec) {
	there := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, volumePrefix) })
	name := ""
	if there >= 0 {
		name = pod.Volumes[there].Name
	} else {
		name = p.names.GenerateName(volumePrefix)
	}
	needed := false
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			if slices.ContainsFunc(containers[i].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mountPath }) {
				continue
			}
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: mountPath})
			needed = true
		}
	}
	if needed && there < 0 {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: tokenVolume()}})
	}
}

// tokenVolume has what a client in a pod needs to reach the API, with the values that defaults would give.
func tokenVolume() *corev1.ProjectedVolumeSource {
	return &corev1.ProjectedVolumeSource{
		DefaultMode: ptr.To(corev1.ProjectedVolumeSourceDefaultMode),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenSeconds)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCertificates}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}
}
