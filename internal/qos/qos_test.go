package qos

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestClass(t *testing.T) {
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	both := list("cpu", "1", "memory", "1Gi")
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		want corev1.PodQOSClass
	}{
		{"nothing said", corev1.PodSpec{Containers: []corev1.Container{container(nil, nil)}}, corev1.PodQOSBestEffort},
		{"zero is nothing", corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "0"), nil)}}, corev1.PodQOSBestEffort},
		{"other resources do not count", corev1.PodSpec{Containers: []corev1.Container{container(list("example.com/gpu", "1"), list("example.com/gpu", "1"))}}, corev1.PodQOSBestEffort},
		{"equal", corev1.PodSpec{Containers: []corev1.Container{container(both, both)}}, corev1.PodQOSGuaranteed},
		{"equal in other units", corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1000m", "memory", "1024Mi"), both)}}, corev1.PodQOSGuaranteed},
		{"limits alone", corev1.PodSpec{Containers: []corev1.Container{container(nil, both)}}, corev1.PodQOSGuaranteed},
		{"a request of zero below its limit", corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "0", "memory", "1Gi"), both)}}, corev1.PodQOSBurstable},
		{"memory unlimited", corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1"), list("cpu", "1"))}}, corev1.PodQOSBurstable},
		{"request below limit", corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "500m", "memory", "1Gi"), both)}}, corev1.PodQOSBurstable},
		{"one of two", corev1.PodSpec{Containers: []corev1.Container{container(both, both), container(nil, nil)}}, corev1.PodQOSBurstable},
		{"init container counts", corev1.PodSpec{InitContainers: []corev1.Container{container(nil, nil)}, Containers: []corev1.Container{container(both, both)}}, corev1.PodQOSBurstable},
		{"pod-level counts instead", corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: both, Limits: both}, Containers: []corev1.Container{container(nil, nil)}}, corev1.PodQOSGuaranteed},
	} {
		if got := Class(&test.spec); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
