// Package certificates describes the kinds of the group certificates.k8s.io, one in a file.
package certificates

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: certificatesv1.SchemeGroupVersion,
		AddToScheme:  certificatesv1.AddToScheme,
		Kinds:        []resource.Description{signingRequest(), clusterTrustBundle(), podCertificateRequest()},
	}
}

var spec = field.NewPath("spec")

// validateBundleName allows the colons that stand between the parts of a signer's name.
func validateBundleName(name string, prefix bool) []string {
	var messages []string
	for part := range strings.SplitSeq(name, ":") {
		messages = append(messages, validation.NameIsDNSSubdomain(part, prefix)...)
	}
	return messages
}

// validateSigner wants "domain/path", whose domain says who signs.
func validateSigner(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || rest == "" {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	errs := rules.Invalid(utilvalidation.IsDNS1123Subdomain(domain), path, domain)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	for segment := range strings.SplitSeq(rest, ".") {
		errs = append(errs, rules.Invalid(utilvalidation.IsDNS1123Label(strings.ToLower(segment)), path, rest)...)
	}
	return errs
}
