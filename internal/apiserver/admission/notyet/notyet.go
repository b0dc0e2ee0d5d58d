// Package notyet warns whoever stores an object that nothing in the cluster acts on yet. The request is answered as ever, with a Warning header, which kubectl shows.
//
// The table says which kinds these are. A part that begins to act on a kind takes its line out. Components of the system are not warned: they know.
package notyet

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/warning"
)

// Name is the plugin's name.
const Name = "NotYet"

// table says, for each resource that is only stored, what is missing.
var table = map[schema.GroupResource]string{
	{Group: "networking.k8s.io", Resource: "networkpolicies"}: "no network policy is enforced: pods reach each other as if there were none",
	{Group: "networking.k8s.io", Resource: "ingresses"}:       "no Ingress controller comes with Bayplan: unless you install one, nothing routes by it",
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: "there is neither a controller that scales by it nor a source of metrics: " +
		"replicas stay as they are",
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                 "requests are not ordered by priority and fairness",
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}: "requests are not ordered by priority and fairness",
}

// Plugin implements admission.ValidationInterface.
type Plugin struct{ *admission.Handler }

// New makes the plugin.
func New() *Plugin { return &Plugin{admission.NewHandler(admission.Create)} }

// Validate implements admission.ValidationInterface. It refuses nothing.
func (*Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	missing, ok := table[a.GetResource().GroupResource()]
	if ok && a.GetSubresource() == "" && !isComponent(a.GetUserInfo()) {
		warning.AddWarning(ctx, "", fmt.Sprintf("%s %q is stored, but nothing acts on it yet: %s", a.GetKind().Kind, a.GetName(), missing))
	}
	return nil
}

// isComponent: the system's parts have names that users cannot have; the service accounts' names look alike, but are of users' programs.
func isComponent(u user.Info) bool {
	return u != nil && strings.HasPrefix(u.GetName(), "system:") && !strings.HasPrefix(u.GetName(), serviceaccount.ServiceAccountUsernamePrefix)
}
