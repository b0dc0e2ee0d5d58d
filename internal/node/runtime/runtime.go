// Package runtime is the seam between the node agent and whatever runs containers.
//
// The seam is the Container Runtime Interface (CRI) of Kubernetes and nothing else. The agent holds a Service, which is the pair
// of interfaces that a CRI server implements. The embedded runtime (package embedded) implements them in this process, so that a call is a
// function call; a runtime behind a socket (containerd, CRI-O) is presented with the same methods.
package runtime

import (
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Service is a container runtime as the CRI describes it. Methods that a runtime does not offer answer with the gRPC status
// Unimplemented, as the CRI wants it.
type Service interface {
	cri.RuntimeServiceServer
	cri.ImageServiceServer
}
