package networking

import (
	"fmt"
	"net/netip"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

const (
	// legacyClassAnnotation named the class before there was a field for it.
	legacyClassAnnotation = "kubernetes.io/ingress.class"
	shownHosts            = 3
)

func ingress() *resource.Kind[*networkingv1.Ingress] {
	return &resource.Kind[*networkingv1.Ingress]{
		Resource:   "ingresses",
		ShortNames: []string{"ing"},
		HasStatus:  true,
		Generation: true,
		New:        func() *networkingv1.Ingress { return &networkingv1.Ingress{} },
		NewList:    func() runtime.Object { return &networkingv1.IngressList{} },
		Validate: func(i *networkingv1.Ingress) field.ErrorList {
			errs := validateIngress(i)
			if _, ok := i.Annotations[legacyClassAnnotation]; ok && i.Spec.IngressClassName != nil {
				path := field.NewPath("metadata", "annotations").Key(legacyClassAnnotation)
				errs = append(errs, field.Invalid(path, i.Annotations[legacyClassAnnotation], "can not be set when the class field is also set"))
			}
			return errs
		},
		ValidateUpdate: func(i, _ *networkingv1.Ingress) field.ErrorList { return validateIngress(i) },
		ValidateStatus: func(i, _ *networkingv1.Ingress) field.ErrorList { return validateIngressStatus(i) },
		Warnings: func(i *networkingv1.Ingress) []string {
			if _, ok := i.Annotations[legacyClassAnnotation]; ok {
				return []string{`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`}
			}
			return nil
		},
		Columns: []resource.Column[*networkingv1.Ingress]{
			{Name: "Class", Description: "Class of the ingress.", Value: func(i *networkingv1.Ingress) any { return classText(i) }},
			{Name: "Hosts", Description: "Hosts that the rules are for.", Value: func(i *networkingv1.Ingress) any { return hostsText(i.Spec.Rules) }},
			{Name: "Address", Description: "Addresses of the load balancer.", Value: func(i *networkingv1.Ingress) any { return addressText(i) }},
			{Name: "Ports", Description: "Ports that are open.", Value: func(i *networkingv1.Ingress) any {
				if len(i.Spec.TLS) > 0 {
					return "80, 443"
				}
				return "80"
			}},
			resource.Age[*networkingv1.Ingress](),
		},
	}
}

func classText(i *networkingv1.Ingress) string {
	if i.Spec.IngressClassName != nil {
		return *i.Spec.IngressClassName
	}
	return resource.OrNone(i.Annotations[legacyClassAnnotation])
}

func hostsText(list []networkingv1.IngressRule) string {
	var hosts []string
	more := 0
	for i, rule := range list {
		switch {
		case len(hosts) == shownHosts:
			more = len(list) - i
		case rule.Host != "":
			hosts = append(hosts, rule.Host)
			continue
		default:
			continue
		}
		break
	}
	if len(hosts) == 0 {
		return "*"
	}
	if more > 0 {
		return fmt.Sprintf("%s + %d more...", strings.Join(hosts, ","), len(list)-shownHosts)
	}
	return strings.Join(hosts, ",")
}

func addressText(i *networkingv1.Ingress) string {
	var list []string
	for _, point := range i.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			list = append(list, point.IP)
		} else if point.Hostname != "" {
			list = append(list, point.Hostname)
		}
	}
	return strings.Join(list, ",")
}

func validateIngress(i *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	if len(i.Spec.Rules) == 0 && i.Spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(spec, i.Spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if i.Spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(i.Spec.DefaultBackend, spec.Child("defaultBackend"))...)
	}
	for n := range i.Spec.Rules {
		errs = append(errs, validateIngressRule(&i.Spec.Rules[n], spec.Child("rules").Index(n))...)
	}
	for n, tls := range i.Spec.TLS {
		path := spec.Child("tls").Index(n)
		for h, host := range tls.Hosts {
			errs = append(errs, validateHost(host, path.Child("hosts").Index(h))...)
		}
		if tls.SecretName != "" {
			errs = append(errs, rules.Subdomain(tls.SecretName, path.Child("secretName"))...)
		}
	}
	if i.Spec.IngressClassName != nil {
		errs = append(errs, rules.Subdomain(*i.Spec.IngressClassName, spec.Child("ingressClassName"))...)
	}
	return errs
}

func validateHost(host string, path *field.Path) field.ErrorList {
	if strings.HasPrefix(host, "*.") {
		return rules.Invalid(utilvalidation.IsWildcardDNS1123Subdomain(host), path, host)
	}
	return rules.Invalid(utilvalidation.IsDNS1123Subdomain(host), path, host)
}

func validateIngressRule(rule *networkingv1.IngressRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if rule.Host != "" {
		if _, err := netip.ParseAddr(rule.Host); err == nil {
			errs = append(errs, field.Invalid(path.Child("host"), rule.Host, "must be a DNS name, not an IP address"))
		} else {
			errs = append(errs, validateHost(rule.Host, path.Child("host"))...)
		}
	}
	if rule.HTTP == nil {
		return errs
	}
	if len(rule.HTTP.Paths) == 0 {
		errs = append(errs, field.Required(path.Child("http", "paths"), ""))
	}
	for i := range rule.HTTP.Paths {
		p, at := &rule.HTTP.Paths[i], path.Child("http", "paths").Index(i)
		errs = append(errs, validateHTTPPath(p, at)...)
		errs = append(errs, validateBackend(&p.Backend, at.Child("backend"))...)
	}
	return errs
}

func validateHTTPPath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	kind := ptr.Deref(p.PathType, "")
	switch kind {
	case "":
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	case networkingv1.PathTypeExact, networkingv1.PathTypePrefix:
	case networkingv1.PathTypeImplementationSpecific:
		if p.Path != "" && !strings.HasPrefix(p.Path, "/") {
			return field.ErrorList{field.Invalid(path.Child("path"), p.Path, "must be an absolute path")}
		}
		return nil
	default:
		return field.ErrorList{field.NotSupported(path.Child("pathType"), kind, []networkingv1.PathType{
			networkingv1.PathTypeExact, networkingv1.PathTypeImplementationSpecific, networkingv1.PathTypePrefix,
		})}
	}
	if !strings.HasPrefix(p.Path, "/") {
		return field.ErrorList{field.Invalid(path.Child("path"), p.Path, "must be an absolute path")}
	}
	var errs field.ErrorList
	for _, sequence := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(p.Path, sequence) {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, fmt.Sprintf("must not contain '%s'", sequence)))
		}
	}
	for _, suffix := range []string{"/..", "/."} {
		if strings.HasSuffix(p.Path, suffix) {
			errs = append(errs, field.Invalid(path.Child("path"), p.Path, fmt.Sprintf("cannot end with '%s'", suffix)))
		}
	}
	return errs
}

func validateBackend(b *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case b.Resource != nil && b.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case b.Resource != nil:
		return append(rules.Required(b.Resource.Kind, path.Child("resource", "kind")), rules.Required(b.Resource.Name, path.Child("resource", "name"))...)
	case b.Service == nil:
		return field.ErrorList{field.Required(path, "exactly one of `resource`, or `service` must be specified")}
	}
	s := path.Child("service")
	var errs field.ErrorList
	if b.Service.Name == "" {
		errs = append(errs, field.Required(s.Child("name"), ""))
	} else {
		errs = append(errs, rules.Invalid(utilvalidation.IsDNS1035Label(b.Service.Name), s.Child("name"), b.Service.Name)...)
	}
	switch port := b.Service.Port; {
	case port.Name != "" && port.Number != 0:
		errs = append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, rules.Invalid(utilvalidation.IsValidPortName(port.Name), s.Child("port", "name"), port.Name)...)
	case port.Number != 0:
		errs = append(errs, rules.Port(port.Number, s.Child("port", "number"))...)
	default:
		errs = append(errs, field.Required(path, "port name or number is required"))
	}
	return errs
}

func validateIngressStatus(i *networkingv1.Ingress) field.ErrorList {
	var errs field.ErrorList
	for n, point := range i.Status.LoadBalancer.Ingress {
		path := field.NewPath("status", "loadBalancer", "ingress").Index(n)
		if point.IP != "" {
			errs = append(errs, utilvalidation.IsValidIP(path.Child("ip"), point.IP)...)
		}
		if point.Hostname != "" {
			errs = append(errs, rules.Subdomain(point.Hostname, path.Child("hostname"))...)
			if _, err := netip.ParseAddr(point.Hostname); err == nil {
				errs = append(errs, field.Invalid(path.Child("hostname"), point.Hostname, "must be a DNS name, not an IP address"))
			}
		}
	}
	return errs
}
