// Package core describes the kinds of the core group, one in a file.
package core

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
	"github.com/bayplan/bayplan/internal/apiserver/resource/tokens"
)

// Options are what kinds of the core group need of the rest of the server.
type Options struct {
	// Nodes is how requests for logs and the like reach the node of a pod.
	Nodes relay.Nodes
	// Event is the kind that events.k8s.io shows too.
	Event *resource.Kind[*corev1.Event]
	// ServiceCIDR and NodePorts are what services get addresses and ports from; ServiceCIDRs is the kind of further networks, IPAddresses the one by which
	// addresses are taken.
	ServiceCIDR  netip.Prefix
	ServiceCIDRs *resource.Kind[*networkingv1.ServiceCIDR]
	IPAddresses  *resource.Kind[*networkingv1.IPAddress]
	NodePorts    allocate.PortRange
	// Budgets is the kind by which evictions are allowed.
	Budgets *resource.Kind[*policyv1.PodDisruptionBudget]
	// Tokens issues the tokens of service accounts.
	Tokens *tokens.Tokens
}

// Group returns the core group.
func Group(options Options) resource.Group {
	nodes, pods, secrets := node(options), pod(options), secret()
	return resource.Group{
		GroupVersion: corev1.SchemeGroupVersion,
		AddToScheme:  corev1.AddToScheme,
		Kinds: []resource.Description{
			configMap(),
			endpoints(),
			options.Event,
			limitRange(),
			namespace(),
			nodes,
			persistentVolumeClaim(),
			persistentVolume(),
			pods,
			podTemplate(),
			replicationController(),
			resourceQuota(),
			secrets,
			serviceAccount(options, pods, secrets, nodes),
			service(options),
		},
	}
}
