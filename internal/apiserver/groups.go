package apiserver

import (
	"net/netip"
	"slices"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/admissionregistration"
	"github.com/bayplan/bayplan/internal/apiserver/resource/allocate"
	"github.com/bayplan/bayplan/internal/apiserver/resource/apps"
	"github.com/bayplan/bayplan/internal/apiserver/resource/authentication"
	"github.com/bayplan/bayplan/internal/apiserver/resource/authorization"
	"github.com/bayplan/bayplan/internal/apiserver/resource/autoscaling"
	"github.com/bayplan/bayplan/internal/apiserver/resource/batch"
	"github.com/bayplan/bayplan/internal/apiserver/resource/certificates"
	"github.com/bayplan/bayplan/internal/apiserver/resource/coordination"
	"github.com/bayplan/bayplan/internal/apiserver/resource/core"
	"github.com/bayplan/bayplan/internal/apiserver/resource/devices"
	"github.com/bayplan/bayplan/internal/apiserver/resource/discovery"
	"github.com/bayplan/bayplan/internal/apiserver/resource/events"
	"github.com/bayplan/bayplan/internal/apiserver/resource/flowcontrol"
	"github.com/bayplan/bayplan/internal/apiserver/resource/networking"
	"github.com/bayplan/bayplan/internal/apiserver/resource/node"
	"github.com/bayplan/bayplan/internal/apiserver/resource/policy"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rbac"
	"github.com/bayplan/bayplan/internal/apiserver/resource/scheduling"
	"github.com/bayplan/bayplan/internal/apiserver/resource/storage"
	"github.com/bayplan/bayplan/internal/apiserver/resource/storagemigration"
	"github.com/bayplan/bayplan/internal/apiserver/resource/tokens"
)

// DefaultServiceCIDR is where services get their addresses from unless the configuration says otherwise.
var DefaultServiceCIDR = netip.MustParsePrefix("10.96.0.0/16")

// needs are what kinds need of the rest of the server.
type needs struct {
	// nodes is how requests that end at a node reach it.
	nodes       relay.Nodes
	serviceCIDR netip.Prefix
	// tokens are those of service accounts; reviewed are all tokens that a TokenReview may ask about.
	tokens   *tokens.Tokens
	reviewed authenticator.Token
	// authorizer is there when requests come.
	authorizer func() authorizer.UnconditionalAuthorizer
	roles      *rbac.Kinds
}

func (s *Server) needs(nodes relay.Nodes) needs {
	s.roles = rbac.New(func() rbac.Grants { return s.generic.Authorizer.(rbac.Grants) })
	return needs{
		nodes: nodes, serviceCIDR: s.serviceCIDR, tokens: s.accounts, reviewed: tokenunion.New(s.accounts, s.tokens, s.bootstrapTokens()),
		authorizer: func() authorizer.UnconditionalAuthorizer { return s.generic.Authorizer },
		roles:      s.roles,
	}
}

// groups are the API groups that are served, in the order of discovery. Of several versions of a group the preferred one comes first.
func groups(n needs) []resource.Group {
	event, budgets := core.Event(), policy.PodDisruptionBudget()
	addresses, networks := networking.IPAddress(), networking.ServiceCIDR()
	return slices.Concat([]resource.Group{
		core.Group(core.Options{
			Nodes: n.nodes, Event: event, Budgets: budgets, Tokens: n.tokens,
			ServiceCIDR: n.serviceCIDR, ServiceCIDRs: networks, IPAddresses: addresses, NodePorts: allocate.DefaultPorts,
		}),
		events.Group(event),
		authentication.Group(n.reviewed, n.tokens.Audiences()),
		authorization.Group(n.authorizer),
	}, autoscaling.Groups(), []resource.Group{
		batch.Group(),
		certificates.Group(),
		networking.Group(addresses, networks),
		policy.Group(budgets),
		n.roles.Group(),
		storage.Group(),
		admissionregistration.Group(),
		apps.Group(),
	}, scheduling.Groups(), []resource.Group{
		coordination.Group(),
		node.Group(),
		discovery.Group(),
		flowcontrol.Group(),
		devices.Group(),
		storagemigration.Group(),
	})
}

// serviceAccountTokens are signed by a key that is kept with the authority's.
func serviceAccountTokens(config Config) (*tokens.Tokens, error) {
	key, err := config.Authority.SigningKey("sa")
	if err != nil {
		return nil, err
	}
	return tokens.New(key, clock.RealClock{})
}
