// Package scheduling describes the kinds of the group scheduling.k8s.io, one in a file.
package scheduling

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Groups returns the two versions of the group: priority classes are stable, workloads and pod groups beta.
func Groups() []resource.Group {
	return []resource.Group{{
		GroupVersion: schedulingv1.SchemeGroupVersion,
		AddToScheme:  schedulingv1.AddToScheme,
		Kinds:        []resource.Description{priorityClass()},
	}, {
		GroupVersion: schedulingv1beta1.SchemeGroupVersion,
		AddToScheme:  schedulingv1beta1.AddToScheme,
		Kinds:        []resource.Description{podGroup(), workload()},
	}}
}
