package apiserver

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
	"github.com/bayplan/bayplan/internal/apiserver/admission/extendedresources"
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
	"github.com/bayplan/bayplan/internal/apiserver/admission/storageprotection"
)

// immortal namespaces cannot be deleted.
var immortal = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease)

// Admission turns plugins on that are off otherwise, and off that are on, by their names.
type Admission struct{ Enable, Disable []string }

// admissionPlugin is one step of admission: the name by which users know it, and what makes it.
type admissionPlugin struct {
	name string
	make func() (admission.Interface, error)
}

// offByDefault are the plugins that are there only when they are asked for.
var offByDefault = sets.New(extendedresources.Name)

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
		{extendedresources.Name, func() (admission.Interface, error) { return extendedresources.New(), nil }},
		{storageclass.Name, func() (admission.Interface, error) { return storageclass.New(factory), nil }},
		{storageprotection.Name, func() (admission.Interface, error) { return storageprotection.New(), nil }},
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
	plugins, err := chosen(s.admissionPlugins(extensions, factory, c.DrainedNotify()), config.Admission)
	if err != nil {
		return nil, err
	}
	all := admission.NewPlugins()
	var order []string
	for _, plugin := range plugins {
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

// chosen returns the plugins that are on.
func chosen(all []admissionPlugin, choice Admission) ([]admissionPlugin, error) {
	known := sets.New[string]()
	for _, plugin := range all {
		known.Insert(plugin.name)
	}
	enable, disable := sets.New(choice.Enable...), sets.New(choice.Disable...)
	if unknown := enable.Union(disable).Difference(known); len(unknown) > 0 {
		return nil, fmt.Errorf("there is no admission plugin %s; there are %s", strings.Join(sets.List(unknown), ", "), strings.Join(sets.List(known), ", "))
	}
	if both := enable.Intersection(disable); len(both) > 0 {
		return nil, fmt.Errorf("admission plugin %s is both enabled and disabled", strings.Join(sets.List(both), ", "))
	}
	return slices.DeleteFunc(all, func(plugin admissionPlugin) bool {
		return disable.Has(plugin.name) || offByDefault.Has(plugin.name) && !enable.Has(plugin.name)
	}), nil
}

// unconfigured: no plugin has a configuration file.
type unconfigured struct{}

// ConfigFor implements admission.ConfigProvider.
func (unconfigured) ConfigFor(string) (io.Reader, error) { return nil, nil }
