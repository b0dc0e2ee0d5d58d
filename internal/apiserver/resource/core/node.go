package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/relay"
	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func node(options Options) *resource.Kind[*corev1.Node] {
	return &resource.Kind[*corev1.Node]{
		Resource:       "nodes",
		ShortNames:     []string{"no"},
		ClusterWide:    true,
		HasStatus:      true,
		New:            func() *corev1.Node { return &corev1.Node{} },
		NewList:        func() runtime.Object { return &corev1.NodeList{} },
		Validate:       validateNode,
		ValidateUpdate: validateNodeUpdate,
		Extra: func(_ resource.Environment, store *genericregistry.Store) (map[string]rest.Storage, error) {
			return map[string]rest.Storage{"proxy": relay.NodeProxy(store, options.Nodes)}, nil
		},
		// A node registers with its whole status, which makes it schedulable at once.
		CreateWithStatus: true,
		Fields: map[string]func(*corev1.Node) string{
			"spec.unschedulable": func(n *corev1.Node) string {
				if n.Spec.Unschedulable {
					return "true"
				}
				return "false"
			},
		},
		Columns: []resource.Column[*corev1.Node]{
			{Name: "Status", Description: "Ready or NotReady, and whether scheduling is disabled.", Value: func(n *corev1.Node) any { return nodeStatus(n) }},
			{Name: "Roles", Description: "The roles that labels give the node.", Value: func(n *corev1.Node) any { return resource.OrNone(nodeRoles(n)) }},
			resource.Age[*corev1.Node](),
			{Name: "Version", Description: "Version of the node agent.", Value: func(n *corev1.Node) any { return n.Status.NodeInfo.KubeletVersion }},
			{Name: "Internal-IP", Wide: true, Description: "Address inside the cluster.", Value: func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeInternalIP) }},
			{Name: "External-IP", Wide: true, Description: "Address from outside.", Value: func(n *corev1.Node) any { return nodeAddress(n, corev1.NodeExternalIP) }},
			{Name: "OS-Image", Wide: true, Description: "Operating system.", Value: func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.OSImage) }},
			{Name: "Kernel-Version", Wide: true, Description: "Kernel.", Value: func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.KernelVersion) }},
			{Name: "Container-Runtime", Wide: true, Description: "Container runtime and its version.", Value: func(n *corev1.Node) any { return orUnknown(n.Status.NodeInfo.ContainerRuntimeVersion) }},
		},
	}
}

func validateNode(n *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "taints")
	seen := sets.New[string]()
	for i, taint := range n.Spec.Taints {
		p := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(taint.Key, p.Child("key"))...)
		for _, message := range utilvalidation.IsValidLabelValue(taint.Value) {
			errs = append(errs, field.Invalid(p.Child("value"), taint.Value, message))
		}
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !slices.Contains(effects, taint.Effect) {
			errs = append(errs, field.NotSupported(p.Child("effect"), taint.Effect, effects))
		}
		key := taint.Key + ":" + string(taint.Effect)
		if seen.Has(key) {
			errs = append(errs, field.Duplicate(p, taint))
		}
		seen.Insert(key)
	}
	return errs
}

func validateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	errs := validateNode(n)
	if old.Spec.PodCIDR != "" && n.Spec.PodCIDR != old.Spec.PodCIDR {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "podCIDR"), "node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && n.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "providerID"), "node updates may not change providerID except from \"\" to valid"))
	}
	return errs
}

func nodeStatus(n *corev1.Node) string {
	status := []string{"Unknown"}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		status[0] = "NotReady"
		if c.Status == corev1.ConditionTrue {
			status[0] = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status = append(status, "SchedulingDisabled")
	}
	return strings.Join(status, ",")
}

func nodeRoles(n *corev1.Node) string {
	roles := sets.New[string]()
	for label, value := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles.Insert(role)
		} else if label == "kubernetes.io/role" && value != "" {
			roles.Insert(value)
		}
	}
	return strings.Join(sets.List(roles), ",")
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return resource.None
}

func orUnknown(text string) string {
	if text == "" {
		return "<unknown>"
	}
	return text
}
