package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func service(options Options) *resource.Kind[*corev1.Service] {
	var a *allocation
	return &resource.Kind[*corev1.Service]{
		Resource:       "services",
		ShortNames:     []string{"svc"},
		Categories:     []string{"all"},
		HasStatus:      true,
		New:            func() *corev1.Service { return &corev1.Service{} },
		NewList:        func() runtime.Object { return &corev1.ServiceList{} },
		ValidateName:   validation.NameIsDNS1035Label,
		Default:        defaultService,
		PrepareCreate:  prepareService,
		PrepareUpdate:  prepareServiceUpdate,
		Validate:       validateService,
		ValidateUpdate: validateServiceUpdate,
		Warnings:       serviceWarnings,
		Fields: map[string]func(*corev1.Service) string{
			"spec.clusterIP": func(s *corev1.Service) string { return s.Spec.ClusterIP },
			"spec.type":      func(s *corev1.Service) string { return string(s.Spec.Type) },
		},
		Columns: []resource.Column[*corev1.Service]{
			{Name: "Type", Description: "How the service is reached.", Value: func(s *corev1.Service) any { return string(s.Spec.Type) }},
			{Name: "Cluster-IP", Description: "Address inside the cluster.", Value: func(s *corev1.Service) any { return resource.OrNone(s.Spec.ClusterIP) }},
			{Name: "External-IP", Description: "Addresses from outside.", Value: func(s *corev1.Service) any { return externalText(s) }},
			{Name: "Port(s)", Description: "Ports, node ports and protocols.", Value: func(s *corev1.Service) any { return resource.OrNone(servicePortsText(s.Spec.Ports)) }},
			resource.Age[*corev1.Service](),
			{Name: "Selector", Wide: true, Description: "Labels of the pods behind the service.", Value: func(s *corev1.Service) any {
				return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			}},
		},
		Extra: func(_ resource.Environment, store *genericregistry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{"proxy": relay.ServiceProxy(store, options.Nodes)}, nil
		},
		Adjust: func(env resource.Environment, store *genericregistry.Store) (err error) {
			a, err = installAllocation(env, store, options)
			return err
		},
		Wrap: func(s *resource.Storage) rest.Storage { return &serviceStorage{s, a} },
	}
}

func externalText(s *corev1.Service) string {
	switch s.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return s.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var addresses []string
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if ingress.IP != "" {
				addresses = append(addresses, ingress.IP)
			} else if ingress.Hostname != "" {
				addresses = append(addresses, ingress.Hostname)
			}
		}
		if addresses = append(addresses, s.Spec.ExternalIPs...); len(addresses) == 0 {
			return "<pending>"
		}
		return strings.Join(addresses, ",")
	}
	return resource.OrNone(strings.Join(s.Spec.ExternalIPs, ","))
}

func servicePortsText(ports []corev1.ServicePort) string {
	var parts []string
	for _, p := range ports {
		if p.NodePort > 0 {
			parts = append(parts, fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d/%s", p.Port, p.Protocol))
	}
	return strings.Join(parts, ",")
}

// serviceWarnings tells of fields that are stored and do less than their name says.
func serviceWarnings(s *corev1.Service) []string {
	var warnings []string
	if s.Spec.ClusterIP == corev1.ClusterIPNone && s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		warnings = append(warnings, "spec.SessionAffinity is ignored for headless services")
	}
	if s.Spec.LoadBalancerIP != "" {
		warnings = append(warnings, "spec.loadBalancerIP is deprecated since v1.24; use the load balancer's own annotations")
	}
	return warnings
}
