// Package flowcontrol describes the kinds of the group flowcontrol.apiserver.k8s.io. They are stored, so that tools that bring them work; the server itself does not
// queue requests by them, and says so.
package flowcontrol

import (
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

// Group returns the group.
func Group() resource.Group {
	return resource.Group{
		GroupVersion: flowcontrolv1.SchemeGroupVersion,
		AddToScheme:  flowcontrolv1.AddToScheme,
		Kinds:        []resource.Description{flowSchema(), priorityLevel()},
	}
}

// Defaults of the API reference.
const (
	defaultPrecedence  = 1000
	defaultShares      = 30
	defaultQueues      = 64
	defaultHandSize    = 8
	defaultQueueLength = 50
)

const notUsed = "this server does not queue requests by flow schemas and priority levels; the object is stored only"

var spec = field.NewPath("spec")

func flowSchema() *resource.Kind[*flowcontrolv1.FlowSchema] {
	return &resource.Kind[*flowcontrolv1.FlowSchema]{
		Resource:    "flowschemas",
		ClusterWide: true,
		HasStatus:   true,
		Generation:  true,
		New:         func() *flowcontrolv1.FlowSchema { return &flowcontrolv1.FlowSchema{} },
		NewList:     func() runtime.Object { return &flowcontrolv1.FlowSchemaList{} },
		Default: func(s *flowcontrolv1.FlowSchema) {
			if s.Spec.MatchingPrecedence == 0 {
				s.Spec.MatchingPrecedence = defaultPrecedence
			}
		},
		Validate: validateFlowSchema,
		Warnings: func(*flowcontrolv1.FlowSchema) []string { return []string{notUsed} },
		Columns: []resource.Column[*flowcontrolv1.FlowSchema]{
			{Name: "PriorityLevel", Description: "Where requests go.", Value: func(s *flowcontrolv1.FlowSchema) any { return s.Spec.PriorityLevelConfiguration.Name }},
			{Name: "MatchingPrecedence", Type: "integer", Description: "Which schema is tried first.", Value: func(s *flowcontrolv1.FlowSchema) any { return int64(s.Spec.MatchingPrecedence) }},
			{Name: "DistinguisherMethod", Description: "What tells flows apart.", Value: func(s *flowcontrolv1.FlowSchema) any {
				if s.Spec.DistinguisherMethod == nil {
					return resource.None
				}
				return string(s.Spec.DistinguisherMethod.Type)
			}},
			resource.Age[*flowcontrolv1.FlowSchema](),
			{Name: "MissingPL", Description: "Whether the priority level is missing.", Value: func(s *flowcontrolv1.FlowSchema) any {
				for _, c := range s.Status.Conditions {
					if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
						return string(c.Status)
					}
				}
				return "?"
			}},
		},
	}
}

func validateFlowSchema(s *flowcontrolv1.FlowSchema) field.ErrorList {
	var errs field.ErrorList
	if p := s.Spec.MatchingPrecedence; p <= 0 {
		errs = append(errs, field.Invalid(spec.Child("matchingPrecedence"), p, "must be a positive value"))
	} else if p > flowcontrolv1.FlowSchemaMaxMatchingPrecedence {
		errs = append(errs, field.Invalid(spec.Child("matchingPrecedence"), p, "must not be greater than 10000"))
	}
	if m := s.Spec.DistinguisherMethod; m != nil {
		errs = append(errs, rules.OneOf(m.Type, spec.Child("distinguisherMethod", "type"),
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType)...)
	}
	errs = append(errs, rules.Subdomain(s.Spec.PriorityLevelConfiguration.Name, spec.Child("priorityLevelConfiguration", "name"))...)
	for i, rule := range s.Spec.Rules {
		path := spec.Child("rules").Index(i)
		if len(rule.Subjects) == 0 {
			errs = append(errs, field.Required(path.Child("subjects"), "subjects must contain at least one value"))
		}
		if len(rule.ResourceRules)+len(rule.NonResourceRules) == 0 {
			errs = append(errs, field.Required(path, "at least one of resourceRules and nonResourceRules has to be non-empty"))
		}
	}
	return errs
}

func priorityLevel() *resource.Kind[*flowcontrolv1.PriorityLevelConfiguration] {
	queuing := func(of func(*flowcontrolv1.QueuingConfiguration) int32) func(*flowcontrolv1.PriorityLevelConfiguration) any {
		return func(p *flowcontrolv1.PriorityLevelConfiguration) any {
			if p.Spec.Limited == nil || p.Spec.Limited.LimitResponse.Queuing == nil {
				return resource.None
			}
			return strconv.Itoa(int(of(p.Spec.Limited.LimitResponse.Queuing)))
		}
	}
	return &resource.Kind[*flowcontrolv1.PriorityLevelConfiguration]{
		Resource:    "prioritylevelconfigurations",
		ClusterWide: true,
		HasStatus:   true,
		Generation:  true,
		New:         func() *flowcontrolv1.PriorityLevelConfiguration { return &flowcontrolv1.PriorityLevelConfiguration{} },
		NewList:     func() runtime.Object { return &flowcontrolv1.PriorityLevelConfigurationList{} },
		Default:     defaultLevel,
		Validate:    validateLevel,
		Warnings:    func(*flowcontrolv1.PriorityLevelConfiguration) []string { return []string{notUsed} },
		Columns: []resource.Column[*flowcontrolv1.PriorityLevelConfiguration]{
			{Name: "Type", Description: "Limited or Exempt.", Value: func(p *flowcontrolv1.PriorityLevelConfiguration) any { return string(p.Spec.Type) }},
			{Name: "NominalConcurrencyShares", Description: "Share of the server's seats.", Value: func(p *flowcontrolv1.PriorityLevelConfiguration) any {
				if p.Spec.Limited == nil || p.Spec.Limited.NominalConcurrencyShares == nil {
					return resource.None
				}
				return resource.Decimal(*p.Spec.Limited.NominalConcurrencyShares)
			}},
			{Name: "Queues", Description: "Number of queues.", Value: queuing(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.Queues })},
			{Name: "HandSize", Description: "Queues that one flow may use.", Value: queuing(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.HandSize })},
			{Name: "QueueLengthLimit", Description: "Requests that wait in one queue.", Value: queuing(func(q *flowcontrolv1.QueuingConfiguration) int32 { return q.QueueLengthLimit })},
			resource.Age[*flowcontrolv1.PriorityLevelConfiguration](),
		},
	}
}

func defaultLevel(p *flowcontrolv1.PriorityLevelConfiguration) {
	if e := p.Spec.Exempt; e != nil {
		e.NominalConcurrencyShares = ptr.To(ptr.Deref(e.NominalConcurrencyShares, 0))
		e.LendablePercent = ptr.To(ptr.Deref(e.LendablePercent, 0))
	}
	l := p.Spec.Limited
	if l == nil {
		return
	}
	l.NominalConcurrencyShares = ptr.To(ptr.Deref(l.NominalConcurrencyShares, defaultShares))
	l.LendablePercent = ptr.To(ptr.Deref(l.LendablePercent, 0))
	if q := l.LimitResponse.Queuing; q != nil {
		for _, f := range []struct {
			field *int32
			value int32
		}{{&q.Queues, defaultQueues}, {&q.HandSize, defaultHandSize}, {&q.QueueLengthLimit, defaultQueueLength}} {
			if *f.field == 0 {
				*f.field = f.value
			}
		}
	}
}

func validateLevel(p *flowcontrolv1.PriorityLevelConfiguration) field.ErrorList {
	errs := rules.OneOf(p.Spec.Type, spec.Child("type"), flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited)
	switch p.Spec.Type {
	case flowcontrolv1.PriorityLevelEnablementExempt:
		if p.Spec.Limited != nil {
			errs = append(errs, field.Forbidden(spec.Child("limited"), "must be nil if the type is not Limited"))
		}
	case flowcontrolv1.PriorityLevelEnablementLimited:
		if p.Spec.Exempt != nil {
			errs = append(errs, field.Forbidden(spec.Child("exempt"), "must be nil if the type is Limited"))
		}
		if p.Spec.Limited == nil {
			return append(errs, field.Required(spec.Child("limited"), "must not be empty when type is Limited"))
		}
		errs = append(errs, validateLimited(p.Spec.Limited, spec.Child("limited"))...)
	}
	return errs
}

func validateLimited(l *flowcontrolv1.LimitedPriorityLevelConfiguration, path *field.Path) field.ErrorList {
	errs := rules.NotNegativePointer(l.NominalConcurrencyShares, path.Child("nominalConcurrencyShares"))
	response := path.Child("limitResponse")
	errs = append(errs, rules.OneOf(l.LimitResponse.Type, response.Child("type"), flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject)...)
	q := l.LimitResponse.Queuing
	switch {
	case l.LimitResponse.Type == flowcontrolv1.LimitResponseTypeQueue && q == nil:
		return append(errs, field.Required(response.Child("queuing"), "must not be empty if limited.limitResponse.type is Limited"))
	case l.LimitResponse.Type != flowcontrolv1.LimitResponseTypeQueue && q != nil:
		return append(errs, field.Forbidden(response.Child("queuing"), "must be nil if limited.limitResponse.type is not Limited"))
	case q == nil:
		return errs
	}
	queuing := response.Child("queuing")
	errs = append(errs, rules.Positive(q.QueueLengthLimit, queuing.Child("queueLengthLimit"))...)
	errs = append(errs, rules.Positive(q.HandSize, queuing.Child("handSize"))...)
	errs = append(errs, rules.Positive(q.Queues, queuing.Child("queues"))...)
	if q.HandSize > q.Queues {
		errs = append(errs, field.Invalid(queuing.Child("handSize"), q.HandSize, "should not be greater than queues ("+resource.Decimal(q.Queues)+")"))
	}
	return errs
}
