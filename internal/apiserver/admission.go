package apiserver

import (
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/names"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver/admission/certificates"
	"github.com/bayplan/bayplan/internal/apiserver/admission/claimresize"
	"github.com/bayplan/bayplan/internal/apiserver/admission/defaulttolerationseconds"
	"github.com/bayplan/bayplan/internal/apiserver/admission/ingressclass"
	"github.com/bayplan/bayplan/internal/apiserver/admission/limitranger"
	"github.com/bayplan/bayplan/internal/apiserver/admission/noderestriction"
	"github.com/bayplan/bayplan/internal/apiserver/admission/nodetaint"
	"github.com/bayplan/bayplan/internal/apiserver/admission/podresize"
	"github.com/bayplan/bayplan/internal/apiserver/admission/priority"
	"github.com/bayplan/bayplan/internal/apiserver/admission/resourcequota"
	"github.com/bayplan/bayplan/internal/apiserver/admission/runtimeclass"
	"github.com/bayplan/bayplan/internal/apiserver/admission/serviceaccount"
	"github.com/bayplan/bayplan/internal/apiserver/admission/storageclass"
)

// immortal namespaces cannot be deleted.
var immortal = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease)

// admissionPlugin is one step of admission: the name by which users know it, and what makes it.
type admissionPlugin struct {
	name string
	make func() (admission.Interface, error)
}

// admissionPlugins are the plugins in the order in which they are asked, which is kube-apiserver's: a plugin counts on what those before it have filled in.
// Those that users configure see what all others made of an object; only the quota, which counts it, comes after them.
func (s *Server) admissionPlugins(extensions []admissionPlugin, factory informers.SharedInformerFactory, drained <-chan struct{}) []admissionPlugin {
	allowed := func() authorizer.UnconditionalAuthorizer { return s.generic.Authorizer }
	return slices.Concat([]admissionPlugin{
		{lifecycle.PluginName, func() (admission.Interface, error) { return lifecycle.NewLifecycle(immortal) }},
		{limitranger.Name, func() (admission.Interface, error) { return limitranger.New(s.client, factory, clock.RealClock{}), nil }},
		{serviceaccount.Name, func() (admission.Interface, error) {
			return serviceaccount.New(s.client, factory, clock.RealClock{}, names.SimpleNameGenerator)
		}},
		{noderestriction.Name, func() (admission.Interface, error) { return noderestriction.New(s.client, factory, allowed), nil }},
		{nodetaint.Name, func() (admission.Interface, error) { return nodetaint.New(), nil }},
		{priority.Name, func() (admission.Interface, error) { return priority.New(s.client, factory), nil }},
		{defaulttolerationseconds.Name, func() (admission.Interface, error) { return defaulttolerationseconds.New(), nil }},
		{storageclass.Name, func() (admission.Interface, error) { return storageclass.New(factory), nil }},
		{claimresize.Name, func() (admission.Interface, error) { return claimresize.New(s.client, factory), nil }},
		{runtimeclass.Name, func() (admission.Interface, error) { return runtimeclass.New(s.client, factory), nil }},
		{certificates.Approval, func() (admission.Interface, error) { return certificates.New(certificates.Approval, allowed) }},
		{certificates.Signing, func() (admission.Interface, error) { return certificates.New(certificates.Signing, allowed) }},
		{certificates.Attest, func() (admission.Interface, error) { return certificates.New(certificates.Attest, allowed) }},
		{certificates.SubjectRestriction, func() (admission.Interface, error) { return certificates.New(certificates.SubjectRestriction, allowed) }},
		{ingressclass.Name, func() (admission.Interface, error) { return ingressclass.New(factory), nil }},
		{podresize.Name, func() (admission.Interface, error) { return podresize.New(s.client), nil }},
	}, extensions, []admissionPlugin{
		{resourcequota.Name, func() (admission.Interface, error) {
			return resourcequota.New(s.client, factory, clock.RealClock{}, drained)
		}},
	})
}

// admission makes the chain of plugins. The library's own get what they ask for by its initializer; ours were made with what they need.
func (s *Server) admission(c *genericapiserver.Config, config Config, factory informers.SharedInformerFactory) (admission.Interface, error) {
	extensions, err := s.extensions(c, config, factory)
	if err != nil {
		return nil, err
	}
	all := admission.NewPlugins()
	var order []string
	for _, plugin := range s.admissionPlugins(extensions, factory, c.DrainedNotify()) {
		all.Register(plugin.name, func(io.Reader) (admission.Interface, error) { return plugin.make() })
		order = append(order, plugin.name)
	}
	needs := initializer.New(s.client, nil, factory, c.Authorization.Authorizer, utilfeature.DefaultFeatureGate, c.EffectiveVersion, c.DrainedNotify(), nil)
	chain, err := all.NewFromPlugins(order, unconfigured{}, needs, admission.DecoratorFunc(admissionmetrics.WithControllerMetrics))
	if err != nil {
		return nil, err
	}
	return admissionmetrics.WithStepMetrics(chain), nil
}

// unconfigured: no plugin has a configuration file.
type unconfigured struct{}

// ConfigFor implements admission.ConfigProvider.
func (unconfigured) ConfigFor(string) (io.Reader, error) { return nil, nil }
