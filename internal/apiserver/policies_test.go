package apiserver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/pki"
	"github.com/bayplan/bayplan/internal/store"
)

// matching is what a policy is for: all operations on some resources of any group.
func matching(resources ...string) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: validatingHook("", admissionregistrationv1.WebhookClientConfig{}, resources...).Rules[0],
	}}}
}

func validatingPolicy(name string, match *admissionregistrationv1.MatchResources, validations ...admissionregistrationv1.Validation) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicySpec{MatchConstraints: match, Validations: validations},
	}
}

// addPolicy makes a policy and a binding of the same name.
func (a *api) addPolicy(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, change func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec)) {
	t.Helper()
	_, err := a.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	must(t, err)
	spec := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	if change != nil {
		change(&spec)
	}
	_, err = a.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(),
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}, Spec: spec}, metav1.CreateOptions{})
	must(t, err)
}

// untilMarked returns when a policy that was made after all others decides, and so the others do too.
func (a *api) untilMarked(t *testing.T) {
	t.Helper()
	a.addPolicy(t, validatingPolicy("marker", matching("configmaps"), admissionregistrationv1.Validation{Expression: `object == null || object.metadata.name != "marker"`}), nil)
	a.until(t, configMap("marker"), refused)
}

func TestValidatingPolicy(t *testing.T) {
	a := startAPI(t)
	warnings := &warned{}
	config := rest.CopyConfig(a.config)
	config.WarningHandlerWithContext = warnings
	client := newClient(t, config)
	policy := validatingPolicy("limits", matching("configmaps"),
		admissionregistrationv1.Validation{
			Expression: `variables.size <= 3`, MessageExpression: `"has " + string(variables.size) + " keys in " + namespaceObject.metadata.name`,
			Reason: ptr.To(metav1.StatusReasonRequestEntityTooLarge),
		},
		admissionregistrationv1.Validation{Expression: `object == null || !("x" in variables.labels)`, Message: "x is not for labels"},
		admissionregistrationv1.Validation{Expression: `object != null || oldObject.metadata.name != "kept"`, Message: "kept is kept"},
		admissionregistrationv1.Validation{Expression: `request.operation != "CREATE" || authorizer.group("").resource("secrets").namespace("default").check("get").allowed()`},
	)
	policy.Spec.Variables = []admissionregistrationv1.Variable{
		{Name: "size", Expression: `object != null && has(object.data) ? object.data.size() : 0`},
		{Name: "labels", Expression: `has(object.metadata.labels) ? object.metadata.labels : {}`},
	}
	a.addPolicy(t, policy, nil)
	a.addPolicy(t, validatingPolicy("soft", matching("configmaps"), admissionregistrationv1.Validation{Expression: `object == null || object.metadata.name.size() < 6`}),
		func(b *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
			b.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
		})
	a.addPolicy(t, validatingPolicy("connections", matching("pods/*"), admissionregistrationv1.Validation{Expression: `request.operation != "CONNECT" || !("rm" in object.command)`}), nil)
	a.untilMarked(t)

	ctx, maps := t.Context(), client.CoreV1().ConfigMaps("default")
	big := configMap("big")
	big.Data = map[string]string{"a": "", "b": "", "c": "", "d": ""}
	_, err := maps.Create(ctx, big, metav1.CreateOptions{})
	if want := `configmaps "big" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'limits' denied request: has 4 keys in default`; errorText(err) != want || !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("too many keys: %q, want %q with the reason of the policy", errorText(err), want)
	}
	_, err = maps.Create(ctx, configMap("label", "x=y"), metav1.CreateOptions{})
	if want := `configmaps "label" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'limits' denied request: x is not for labels`; errorText(err) != want || !apierrors.IsInvalid(err) {
		t.Errorf("a label: %q, want %q", errorText(err), want)
	}
	_, err = maps.Create(ctx, configMap("kept"), metav1.CreateOptions{})
	must(t, err)
	err = maps.Delete(ctx, "kept", metav1.DeleteOptions{})
	if want := `configmaps "kept" is forbidden: ValidatingAdmissionPolicy 'limits' with binding 'limits' denied request: kept is kept`; errorText(err) != want {
		t.Errorf("a deletion: %q, want %q", errorText(err), want)
	}
	_, err = maps.Create(ctx, configMap("longer"), metav1.CreateOptions{})
	must(t, err)
	if want := []string{"Validation failed for ValidatingAdmissionPolicy 'soft' with binding 'soft': failed expression: object == null || object.metadata.name.size() < 6"}; !slices.Equal(warnings.texts, want) {
		t.Errorf("warnings are %q, want %q", warnings.texts, want)
	}
	_, err = client.CoreV1().Pods("default").Create(ctx, newPod("p"), metav1.CreateOptions{})
	must(t, err)
	for command, want := range map[string]string{"ls": "does not have a host assigned", "rm": `ValidatingAdmissionPolicy 'connections' with binding 'connections' denied request`} {
		err := a.client.CoreV1().RESTClient().Post().RequestURI("/api/v1/namespaces/default/pods/p/exec?stdout=1&command=" + command).Do(ctx).Error()
		if !strings.Contains(errorText(err), want) {
			t.Errorf("exec of %s: %q, want %q", command, errorText(err), want)
		}
	}
}

// TestPolicyParams has policies whose parameters are objects of the API.
func TestPolicyParams(t *testing.T) {
	a := startAPI(t)
	ctx := t.Context()
	limit := configMap("limit", "for=all")
	limit.Data = map[string]string{"longest": "5"}
	_, err := a.client.CoreV1().ConfigMaps("default").Create(ctx, limit, metav1.CreateOptions{})
	must(t, err)
	withParams := func(name string, resources ...string) *admissionregistrationv1.ValidatingAdmissionPolicy {
		policy := validatingPolicy(name, matching(resources...), admissionregistrationv1.Validation{
			Expression: `object == null || object.metadata.name.size() <= int(params.data.longest)`, MessageExpression: `"longer than " + params.data.longest`,
		})
		policy.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"}
		return policy
	}
	ref := func(name, namespace string, action admissionregistrationv1.ParameterNotFoundActionType) func(*admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
		return func(b *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
			b.ParamRef = &admissionregistrationv1.ParamRef{Name: name, Namespace: namespace, ParameterNotFoundAction: &action}
		}
	}
	a.addPolicy(t, withParams("secrets", "secrets"), ref("limit", "default", admissionregistrationv1.DenyAction))
	a.addPolicy(t, withParams("accounts", "serviceaccounts"), ref("none", "default", admissionregistrationv1.DenyAction))
	a.addPolicy(t, withParams("templates", "podtemplates"), ref("none", "default", admissionregistrationv1.AllowAction))
	a.addPolicy(t, withParams("services", "services"), func(b *admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec) {
		b.ParamRef = &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": "all"}}, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction)}
	})
	unknown := withParams("unknown", "endpoints")
	unknown.Spec.ParamKind = &admissionregistrationv1.ParamKind{APIVersion: "example.com/v1", Kind: "None"}
	a.addPolicy(t, unknown, ref("x", "default", admissionregistrationv1.DenyAction))
	a.untilMarked(t)

	secret := func(name string) error {
		_, err := a.client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const denied = "%s %q is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied request: "
	must(t, secret("short"))
	if want := fmt.Sprintf(denied+"longer than 5", "secrets", "longer", "secrets", "secrets"); errorText(secret("longer")) != want {
		t.Errorf("with parameters: %q, want %q", errorText(secret("longer")), want)
	}
	_, err = a.client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{})
	if want := "no params found for policy binding with `Deny` parameterNotFoundAction"; !strings.Contains(errorText(err), want) {
		t.Errorf("without parameters: %q, want %q", errorText(err), want)
	}
	_, err = a.client.CoreV1().PodTemplates("default").Create(ctx, &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "template"}, Template: corev1.PodTemplateSpec{Spec: newPod("p").Spec}}, metav1.CreateOptions{})
	if err != nil {
		t.Errorf("without parameters, which is allowed: %v", err)
	}
	_, err = a.client.CoreV1().Services("default").Create(ctx, newService("selected", nil), metav1.CreateOptions{})
	if want := fmt.Sprintf(denied+"longer than 5", "services", "selected", "services", "services"); errorText(err) != want {
		t.Errorf("with selected parameters: %q, want %q", errorText(err), want)
	}
	_, err = a.client.CoreV1().Endpoints("default").Create(ctx, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "e"}}, metav1.CreateOptions{}) //nolint:staticcheck // a kind that no other policy here is for
	if want := "failed to find resource referenced by paramKind: 'example.com/v1, Kind=None'"; !strings.Contains(errorText(err), want) {
		t.Errorf("with parameters of an unknown kind: %q, want %q", errorText(err), want)
	}
	// Parameters that change are read anew, also by policies made after the last policy with such parameters went.
	for _, name := range []string{"secrets", "accounts", "templates", "services"} {
		must(t, a.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}))
	}
	allowed := func() (bool, string) { err := secret("longer"); return err == nil, errorText(err) }
	untilDone(t, allowed)
	a.addPolicy(t, withParams("again", "secrets"), ref("limit", "default", admissionregistrationv1.DenyAction))
	untilDone(t, func() (bool, string) { return secret("longer") != nil, "allowed" })
	limit.Data["longest"] = "7"
	_, err = a.client.CoreV1().ConfigMaps("default").Update(ctx, limit, metav1.UpdateOptions{})
	must(t, err)
	untilDone(t, allowed)
}

func TestMutatingPolicy(t *testing.T) {
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), ReadyTimeout: storeTimeout})
	must(t, err)
	t.Cleanup(s.Close)
	authority, err := pki.Open(t.TempDir(), clock.RealClock{})
	must(t, err)
	a := startOn(t, s, authority)
	for name, mutation := range map[string]admissionregistrationv1.Mutation{
		"apply": {PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
			Expression: `Object{metadata: Object.metadata{labels: {"applied": object.metadata.name}}}`,
		}},
		"patch": {PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
			Expression: `[JSONPatch{op: "add", path: "/data", value: {"patched": string(has(object.metadata.labels) && "applied" in object.metadata.labels)}}]`,
		}},
	} {
		_, err := a.client.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule:       matching("configmaps").ResourceRules[0].Rule,
					},
				}}},
				Mutations:          []admissionregistrationv1.Mutation{mutation},
				ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
			},
		}, metav1.CreateOptions{})
		must(t, err)
		_, err = a.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		}, metav1.CreateOptions{})
		must(t, err)
	}
	a.until(t, configMap("x"), func(made *corev1.ConfigMap, err error) bool {
		return err == nil && made.Labels["applied"] == "x" && made.Data["patched"] != ""
	})
	// A server that is started again knows the policies before it answers.
	for i, server := range []*api{a, startOn(t, s, authority)} {
		made, err := server.client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap(fmt.Sprint("m", i)), metav1.CreateOptions{})
		must(t, err)
		if made.Labels["applied"] != made.Name || made.Data["patched"] != "true" {
			t.Errorf("the policies made %v and %v", made.Labels, made.Data)
		}
	}
}
