// Package policystatus checks the types in the expressions of ValidatingAdmissionPolicies: that a Deployment has no field spec.replica, for example. Policy events lead to a
// sync of the policy, which compiles its expressions against the kinds that it is for and writes warnings into status.typeChecking.
//
// The kinds and their schemas are asked of the API server for each check, so that nothing is kept between the few times that somebody writes a policy.
package policystatus

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/restmapper"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "validatingadmissionpolicy-status-controller"

// Controller checks policies.
type Controller struct {
	*controller.Loop
	client    kubernetes.Interface
	discovery discovery.DiscoveryInterface
	schemas   resolver.SchemaResolver
	policies  admissionlisters.ValidatingAdmissionPolicyLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	return newController(deps, &resolver.ClientDiscoveryResolver{Discovery: deps.Discovery})
}

func newController(deps controller.Deps, schemas resolver.SchemaResolver) (controller.Controller, error) {
	policies := deps.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	c := &Controller{client: deps.Client, discovery: deps.Discovery, schemas: schemas, policies: policies.Lister()}
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	changed := func(policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
		if !checked(policy) {
			c.AddObject(policy)
		}
	}
	return c, c.Handle(policies.Informer(), controller.Handlers[*admissionregistrationv1.ValidatingAdmissionPolicy]{
		Add: changed, Update: func(_, policy *admissionregistrationv1.ValidatingAdmissionPolicy) { changed(policy) },
	})
}

func checked(policy *admissionregistrationv1.ValidatingAdmissionPolicy) bool {
	return policy.Status.ObservedGeneration >= policy.Generation
}

func (c *Controller) sync(ctx context.Context, name string) error {
	policy, err := c.policies.Get(name)
	if err != nil || checked(policy) {
		return controller.IgnoreNotFound(err)
	}
	warnings, err := c.check(policy)
	if err != nil {
		return fmt.Errorf("check the types in ValidatingAdmissionPolicy %s: %w", name, err)
	}
	written := policy.DeepCopy()
	written.Status.ObservedGeneration = policy.Generation
	written.Status.TypeChecking = &admissionregistrationv1.TypeChecking{ExpressionWarnings: warnings}
	if _, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().UpdateStatus(ctx, written, metav1.UpdateOptions{}); controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write what the check of ValidatingAdmissionPolicy %s found: %w", name, err)
	}
	return nil
}

func (c *Controller) check(policy *admissionregistrationv1.ValidatingAdmissionPolicy) ([]admissionregistrationv1.ExpressionWarning, error) {
	served, err := restmapper.GetAPIGroupResources(c.discovery)
	if err != nil {
		return nil, err
	}
	checker := validating.TypeChecker{SchemaResolver: c.schemas, RestMapper: restmapper.NewDiscoveryRESTMapper(served)}
	return checker.Check(policy), nil
}
