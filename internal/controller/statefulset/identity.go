package statefulset

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

// podName is the name of the pod with an ordinal.
func podName(set *appsv1.StatefulSet, ordinal int) string {
	return fmt.Sprintf("%s-%d", set.Name, ordinal)
}

// ordinalOf reads the ordinal from a pod's name; -1 if the name is not one of the set's.
func ordinalOf(set *appsv1.StatefulSet, pod *corev1.Pod) int {
	text, found := strings.CutPrefix(pod.Name, set.Name+"-")
	ordinal, err := strconv.Atoi(text)
	if !found || err != nil || ordinal < 0 || podName(set, ordinal) != pod.Name {
		return -1
	}
	return ordinal
}

// claimName is the name of the claim that a template gives to an ordinal.
func claimName(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) string {
	return fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal)
}

// newPod is the pod of an ordinal, made from a revision's template.
func newPod(set *appsv1.StatefulSet, template *corev1.PodTemplateSpec, revision string, ordinal int) *corev1.Pod {
	pod := controller.PodFromTemplate(template, set, gvk)
	pod.GenerateName, pod.Name = "", podName(set, ordinal)
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	setIdentity(set, pod, ordinal)
	pod.Labels[appsv1.StatefulSetRevisionLabel] = revision
	return pod
}

// setIdentity gives a pod the labels and the claims of its ordinal.
func setIdentity(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) {
	pod.Labels = maps.Clone(pod.Labels)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(ordinal)
	var volumes []corev1.Volume
	own := map[string]bool{}
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		own[template.Name] = true
		volumes = append(volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, template, ordinal)}}})
	}
	for _, volume := range pod.Spec.Volumes {
		if !own[volume.Name] {
			volumes = append(volumes, volume)
		}
	}
	pod.Spec.Volumes = volumes
}

// hasIdentity tells whether a pod carries the labels of its ordinal.
func hasIdentity(pod *corev1.Pod, ordinal int) bool {
	return pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name && pod.Labels[appsv1.PodIndexLabel] == strconv.Itoa(ordinal)
}

// newClaim is the claim that a template gives to an ordinal.
func newClaim(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name, claim.Namespace = claimName(set, template, ordinal), set.Namespace
	claim.Status = corev1.PersistentVolumeClaimStatus{}
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	if set.Spec.Selector != nil {
		maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	}
	return claim
}

func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.StatefulSetRevisionLabel] }

func startOf(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func sizeOf(set *appsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

func partitionOf(set *appsv1.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

// ownerOf is a plain reference: the owner's end is the claim's end.
func ownerOf(apiVersion, kind string, owner metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID()}
}
