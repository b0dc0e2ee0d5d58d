package extension

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/restmapper"
)

func (c Config) mutatingPolicies() (admission.Interface, error) {
	plugin, err := mutating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	plugin.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	// The plugin reads the descriptions of all kinds beside its work, and fails requests until it has. The server makes them when it is first asked, which takes
	// a while: so they are made first.
	if _, err := c.Client.Discovery().OpenAPIV3().Paths(); err != nil {
		return nil, err
	}
	equipPolicies(c, plugin.Plugin)
	return plugin, plugin.ValidateInitialization()
}

func (c Config) validatingPolicies() (admission.Interface, error) {
	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		return nil, err
	}
	equipPolicies(c, plugin.Plugin)
	return plugin, plugin.ValidateInitialization()
}

func equipPolicies[H any](c Config, plugin *generic.Plugin[H]) {
	plugin.SetDrainedNotification(c.Drained)
	plugin.SetExternalKubeClientSet(c.Client)
	plugin.SetDynamicClient(c.Dynamic)
	plugin.SetExternalKubeInformerFactory(paramInformers{c.Informers})
	plugin.SetUnconditionalAuthorizer(c.Authorizer)
	plugin.SetRESTMapper(newMapper(c.Client.Discovery()))
	plugin.SetExcludedAdmissionResources(virtual)
}

// paramInformers gives out no informer of parameters: the policies then make one for each kind of parameter, which ends with the last policy that has that
// kind. From the shared factory they would take, and stop, one that cannot be started again, and later policies would read old parameters.
type paramInformers struct {
	informers.SharedInformerFactory
}

func (paramInformers) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return nil, fmt.Errorf("parameters of %s are not shared", resource)
}

// mapper finds the resource of a kind. When it does not know a kind it asks the server again: a definition of custom resources may be new.
type mapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
}

func newMapper(d discovery.DiscoveryInterface) mapper {
	return mapper{restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))}
}

// RESTMapping implements meta.RESTMapper.
func (m mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := m.DeferredDiscoveryRESTMapper.RESTMapping(kind, versions...)
	if meta.IsNoMatchError(err) {
		m.Reset()
		return m.DeferredDiscoveryRESTMapper.RESTMapping(kind, versions...)
	}
	return found, err
}
