// Package core describes the kinds of the core group, one in a file.
package core

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the core group. Nodes is how requests for logs and the like reach the node of a pod.
func Group(nodes relay.Nodes) resource.Group {
	return resource.Group{
		GroupVersion: corev1.SchemeGroupVersion,
		AddToScheme:  corev1.AddToScheme,
		Kinds: []resource.Description{
			configMap(),
			event(),
			namespace(),
			node(),
			pod(nodes),
			secret(),
			serviceAccount(),
		},
	}
}
