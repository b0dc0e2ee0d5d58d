package scheduling

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

var spec = field.NewPath("spec")

func workload() *resource.Kind[*schedulingv1beta1.Workload] {
	return &resource.Kind[*schedulingv1beta1.Workload]{
		Resource:   "workloads",
		Generation: true,
		New:        func() *schedulingv1beta1.Workload { return &schedulingv1beta1.Workload{} },
		NewList:    func() runtime.Object { return &schedulingv1beta1.WorkloadList{} },
		Validate:   validateWorkload,
		ValidateUpdate: func(w, old *schedulingv1beta1.Workload) field.ErrorList {
			errs := validateWorkload(w)
			if old.Spec.ControllerRef != nil {
				errs = append(errs, rules.Unchanged(w.Spec.ControllerRef, old.Spec.ControllerRef, spec.Child("controllerRef"))...)
			}
			return append(errs, rules.Unchanged(w.Spec.PodGroupTemplates, old.Spec.PodGroupTemplates, spec.Child("podGroupTemplates"))...)
		},
		Columns: []resource.Column[*schedulingv1beta1.Workload]{resource.Age[*schedulingv1beta1.Workload]()},
	}
}

func validateWorkload(w *schedulingv1beta1.Workload) field.ErrorList {
	var errs field.ErrorList
	if ref := w.Spec.ControllerRef; ref != nil {
		path := spec.Child("controllerRef")
		if ref.APIGroup != "" {
			errs = append(errs, rules.Subdomain(ref.APIGroup, path.Child("apiGroup"))...)
		}
		errs = append(errs, rules.Required(ref.Kind, path.Child("kind"))...)
		errs = append(errs, rules.Required(ref.Name, path.Child("name"))...)
	}
	if len(w.Spec.CompositePodGroupTemplates) > 0 {
		errs = append(errs, field.Forbidden(spec.Child("compositePodGroupTemplates"), "composite pod groups are alpha in Kubernetes 1.37 and not served; use podGroupTemplates"))
	}
	path := spec.Child("podGroupTemplates")
	if len(w.Spec.PodGroupTemplates) == 0 {
		errs = append(errs, field.Required(path, "must have at least one item"))
	}
	errs = append(errs, rules.AtMost(w.Spec.PodGroupTemplates, schedulingv1beta1.WorkloadMaxPodGroupTemplates, path)...)
	names := sets.New[string]()
	for i := range w.Spec.PodGroupTemplates {
		t, p := &w.Spec.PodGroupTemplates[i], path.Index(i)
		errs = append(errs, rules.Label(t.Name, p.Child("name"))...)
		if names.Has(t.Name) {
			errs = append(errs, field.Duplicate(p, t.Name))
		}
		names.Insert(t.Name)
		errs = append(errs, validateGroup(group{&t.SchedulingPolicy, t.SchedulingConstraints, t.ResourceClaims, t.DisruptionMode, t.PriorityClassName, t.PreemptionPolicy}, p)...)
	}
	return errs
}

func podGroup() *resource.Kind[*schedulingv1beta1.PodGroup] {
	return &resource.Kind[*schedulingv1beta1.PodGroup]{
		Resource:   "podgroups",
		HasStatus:  true,
		Generation: true,
		New:        func() *schedulingv1beta1.PodGroup { return &schedulingv1beta1.PodGroup{} },
		NewList:    func() runtime.Object { return &schedulingv1beta1.PodGroupList{} },
		Validate:   validatePodGroup,
		ValidateUpdate: func(g, old *schedulingv1beta1.PodGroup) field.ErrorList {
			errs := validatePodGroup(g)
			now := g.Spec.DeepCopy()
			// The priority comes from its class and may be filled in once.
			if old.Spec.Priority == nil {
				now.Priority = nil
			}
			return append(errs, rules.Unchanged(*now, old.Spec, spec)...)
		},
		ValidateStatus: func(g, _ *schedulingv1beta1.PodGroup) field.ErrorList {
			return rules.Conditions(g.Status.Conditions, field.NewPath("status", "conditions"))
		},
		Columns: []resource.Column[*schedulingv1beta1.PodGroup]{resource.Age[*schedulingv1beta1.PodGroup]()},
	}
}

func validatePodGroup(g *schedulingv1beta1.PodGroup) field.ErrorList {
	var errs field.ErrorList
	if ref := g.Spec.WorkloadRef; ref != nil {
		errs = append(errs, rules.Subdomain(ref.WorkloadName, spec.Child("workloadRef", "workloadName"))...)
		errs = append(errs, rules.Label(ref.TemplateName, spec.Child("workloadRef", "templateName"))...)
	}
	if g.Spec.ParentCompositePodGroupName != nil {
		errs = append(errs, field.Forbidden(spec.Child("parentCompositePodGroupName"), "composite pod groups are alpha in Kubernetes 1.37 and not served"))
	}
	s := &g.Spec
	return append(errs, validateGroup(group{&s.SchedulingPolicy, s.SchedulingConstraints, s.ResourceClaims, s.DisruptionMode, s.PriorityClassName, s.PreemptionPolicy}, spec)...)
}

// group is what a pod group and its template in a workload share.
type group struct {
	policy        *schedulingv1beta1.PodGroupSchedulingPolicy
	constraints   *schedulingv1beta1.PodGroupSchedulingConstraints
	claims        []schedulingv1beta1.PodGroupResourceClaim
	disruption    *schedulingv1beta1.DisruptionMode
	priorityClass string
	preemption    *schedulingv1beta1.PreemptionPolicy
}

func validateGroup(g group, path *field.Path) field.ErrorList {
	p := path.Child("schedulingPolicy")
	errs := rules.ExactlyOne(p, []string{"basic", "gang"}, g.policy.Basic != nil, g.policy.Gang != nil)
	if g.policy.Gang != nil {
		errs = append(errs, rules.Positive(g.policy.Gang.MinCount, p.Child("gang", "minCount"))...)
	}
	if g.constraints != nil {
		for i, t := range g.constraints.Topology {
			errs = append(errs, rules.Qualified(t.Key, path.Child("schedulingConstraints", "topology").Index(i).Child("key"))...)
		}
		if len(g.constraints.Topology) > 1 {
			errs = append(errs, field.TooMany(path.Child("schedulingConstraints", "topology"), len(g.constraints.Topology), 1))
		}
	}
	if d := g.disruption; d != nil {
		errs = append(errs, rules.ExactlyOne(path.Child("disruptionMode"), []string{"single", "all"}, d.Single != nil, d.All != nil)...)
	}
	if g.priorityClass != "" {
		errs = append(errs, rules.Subdomain(g.priorityClass, path.Child("priorityClassName"))...)
	}
	errs = append(errs, rules.OneOfPointer(g.preemption, path.Child("preemptionPolicy"), schedulingv1beta1.PreemptLowerPriority, schedulingv1beta1.PreemptNever)...)
	return append(errs, validateClaims(g.claims, path.Child("resourceClaims"))...)
}

func validateClaims(claims []schedulingv1beta1.PodGroupResourceClaim, path *field.Path) field.ErrorList {
	errs := rules.AtMost(claims, schedulingv1beta1.MaxPodGroupResourceClaims, path)
	names := sets.New[string]()
	for i, c := range claims {
		p := path.Index(i)
		errs = append(errs, rules.Label(c.Name, p.Child("name"))...)
		if names.Has(c.Name) {
			errs = append(errs, field.Duplicate(p, c.Name))
		}
		names.Insert(c.Name)
		if (c.ResourceClaimName == nil) == (c.ResourceClaimTemplateName == nil) {
			errs = append(errs, field.Invalid(p, c.Name, "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
	}
	return errs
}
