// Package autoscaling describes the group autoscaling: the HorizontalPodAutoscaler in two versions with one storage. autoscaling/v2 is stored; what v1 cannot say
// of it travels in annotations, so that a v1 client loses nothing.
package autoscaling

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Groups returns the two versions of the group, the preferred one first.
func Groups() []resource.Group {
	autoscaler := horizontalPodAutoscaler()
	return []resource.Group{{
		GroupVersion: autoscalingv2.SchemeGroupVersion,
		AddToScheme:  autoscalingv2.AddToScheme,
		Kinds:        []resource.Description{autoscaler},
	}, {
		GroupVersion: autoscalingv1.SchemeGroupVersion,
		AddToScheme:  addV1ToScheme,
		Kinds:        []resource.Description{autoscaler},
	}}
}
