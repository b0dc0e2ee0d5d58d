package networking

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func networkPolicy() *resource.Kind[*networkingv1.NetworkPolicy] {
	return &resource.Kind[*networkingv1.NetworkPolicy]{
		Resource:   "networkpolicies",
		ShortNames: []string{"netpol"},
		Generation: true,
		New:        func() *networkingv1.NetworkPolicy { return &networkingv1.NetworkPolicy{} },
		NewList:    func() runtime.Object { return &networkingv1.NetworkPolicyList{} },
		Default:    defaultPolicy,
		Validate:   validatePolicy,
		Columns: []resource.Column[*networkingv1.NetworkPolicy]{
			{Name: "Pod-Selector", Description: "Labels of the pods that the policy is for.", Value: func(p *networkingv1.NetworkPolicy) any { return metav1.FormatLabelSelector(&p.Spec.PodSelector) }},
			resource.Age[*networkingv1.NetworkPolicy](),
		},
	}
}

func defaultPolicy(p *networkingv1.NetworkPolicy) {
	if len(p.Spec.PolicyTypes) == 0 {
		p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(p.Spec.Egress) > 0 {
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	ports := func(list []networkingv1.NetworkPolicyPort) {
		for i := range list {
			if list[i].Protocol == nil {
				list[i].Protocol = ptr.To(corev1.ProtocolTCP)
			}
		}
	}
	for i := range p.Spec.Ingress {
		ports(p.Spec.Ingress[i].Ports)
	}
	for i := range p.Spec.Egress {
		ports(p.Spec.Egress[i].Ports)
	}
}

func validatePolicy(p *networkingv1.NetworkPolicy) field.ErrorList {
	errs := rules.Selector(&p.Spec.PodSelector, spec.Child("podSelector"))
	for i, rule := range p.Spec.Ingress {
		path := spec.Child("ingress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(rule.From, path.Child("from"))...)
	}
	for i, rule := range p.Spec.Egress {
		path := spec.Child("egress").Index(i)
		errs = append(errs, validatePolicyPorts(rule.Ports, path.Child("ports"))...)
		errs = append(errs, validatePeers(rule.To, path.Child("to"))...)
	}
	if len(p.Spec.PolicyTypes) > 2 {
		return append(errs, field.Invalid(spec.Child("policyTypes"), p.Spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, kind := range p.Spec.PolicyTypes {
		errs = append(errs, rules.OneOf(kind, spec.Child("policyTypes").Index(i), networkingv1.PolicyTypeEgress, networkingv1.PolicyTypeIngress)...)
	}
	return errs
}

func validatePolicyPorts(ports []networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, port := range ports {
		p := path.Index(i)
		errs = append(errs, rules.OneOfPointer(port.Protocol, p.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
		switch {
		case port.Port == nil && port.EndPort != nil:
			errs = append(errs, field.Required(p.Child("port"), "must be specified when `endPort` is specified"))
		case port.Port == nil:
		case port.Port.Type == intstr.String:
			errs = append(errs, rules.Invalid(utilvalidation.IsValidPortName(port.Port.StrVal), p.Child("port"), port.Port.StrVal)...)
			if port.EndPort != nil {
				errs = append(errs, field.Invalid(p.Child("endPort"), *port.EndPort, "may not be specified when `port` is non-numeric"))
			}
		default:
			errs = append(errs, rules.Port(port.Port.IntVal, p.Child("port"))...)
			if port.EndPort == nil {
				continue
			}
			if *port.EndPort < port.Port.IntVal {
				errs = append(errs, field.Invalid(p.Child("endPort"), port.Port.IntVal, "must be greater than or equal to `port`"))
			}
			errs = append(errs, rules.Port(*port.EndPort, p.Child("endPort"))...)
		}
	}
	return errs
}

func validatePeers(peers []networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, peer := range peers {
		p := path.Index(i)
		errs = append(errs, rules.Selector(peer.PodSelector, p.Child("podSelector"))...)
		errs = append(errs, rules.Selector(peer.NamespaceSelector, p.Child("namespaceSelector"))...)
		switch {
		case peer.PodSelector == nil && peer.NamespaceSelector == nil && peer.IPBlock == nil:
			errs = append(errs, field.Required(p, "must specify a peer"))
		case peer.IPBlock != nil && (peer.PodSelector != nil || peer.NamespaceSelector != nil):
			errs = append(errs, field.Forbidden(p, "may not specify both ipBlock and another peer"))
		case peer.IPBlock != nil:
			errs = append(errs, validateBlock(peer.IPBlock, p.Child("ipBlock"))...)
		}
	}
	return errs
}

func validateBlock(b *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	if b.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	whole, err := netip.ParsePrefix(b.CIDR)
	if err != nil {
		return field.ErrorList{field.Invalid(path.Child("cidr"), b.CIDR, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")}
	}
	var errs field.ErrorList
	for i, text := range b.Except {
		p := path.Child("except").Index(i)
		part, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(p, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
		case !whole.Contains(part.Addr()) || whole.Bits() >= part.Bits():
			errs = append(errs, field.Invalid(p, text, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}
