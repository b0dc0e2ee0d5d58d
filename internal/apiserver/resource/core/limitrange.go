package core

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func limitRange() *resource.Kind[*corev1.LimitRange] {
	return &resource.Kind[*corev1.LimitRange]{
		Resource:            "limitranges",
		ShortNames:          []string{"limits"},
		AllowCreateOnUpdate: true,
		New:                 func() *corev1.LimitRange { return &corev1.LimitRange{} },
		NewList:             func() runtime.Object { return &corev1.LimitRangeList{} },
		Default: func(l *corev1.LimitRange) {
			for i := range l.Spec.Limits {
				if item := &l.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
					defaultLimits(item)
				}
			}
		},
		Validate: validateLimitRange,
		Columns: []resource.Column[*corev1.LimitRange]{
			{Name: "Created At", Description: "When the object was created.", Value: func(l *corev1.LimitRange) any { return l.CreationTimestamp.UTC().Format(time.RFC3339) }},
		},
	}
}

// defaultLimits: the default limit is the maximum, the default request is the default limit or else the minimum.
func defaultLimits(item *corev1.LimitRangeItem) {
	item.Default = fill(item.Default, item.Max)
	item.DefaultRequest = fill(item.DefaultRequest, item.Default)
	item.DefaultRequest = fill(item.DefaultRequest, item.Min)
}

// fill adds to list what it lacks of the others.
func fill(list, others corev1.ResourceList) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	for name, quantity := range others {
		if _, ok := list[name]; !ok {
			list[name] = quantity.DeepCopy()
		}
	}
	return list
}

func validateLimitRange(l *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, path := &l.Spec.Limits[i], specPath.Child("limits").Index(i)
		if item.Type == "" {
			errs = append(errs, field.Required(path.Child("type"), ""))
		}
		if seen.Has(item.Type) {
			errs = append(errs, field.Duplicate(path.Child("type"), item.Type))
		}
		seen.Insert(item.Type)
		errs = append(errs, validateLimitItem(item, path)...)
	}
	return errs
}

func validateLimitItem(item *corev1.LimitRangeItem, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if item.Type == corev1.LimitTypePod {
		if len(item.Default) > 0 {
			errs = append(errs, field.Forbidden(path.Child("default"), "may not be specified when `type` is 'Pod'"))
		}
		if len(item.DefaultRequest) > 0 {
			errs = append(errs, field.Forbidden(path.Child("defaultRequest"), "may not be specified when `type` is 'Pod'"))
		}
	}
	_, hasMax := item.Max[corev1.ResourceStorage]
	_, hasMin := item.Min[corev1.ResourceStorage]
	if item.Type == corev1.LimitTypePersistentVolumeClaim && !hasMax && !hasMin {
		errs = append(errs, field.Required(path.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
	}
	names := sets.New[corev1.ResourceName]()
	for key, list := range map[string]corev1.ResourceList{
		"max": item.Max, "min": item.Min, "default": item.Default, "defaultRequest": item.DefaultRequest, "maxLimitRequestRatio": item.MaxLimitRequestRatio,
	} {
		for name := range list {
			errs = append(errs, rules.Qualified(string(name), path.Child(key).Key(string(name)))...)
			names.Insert(name)
		}
	}
	for _, name := range sets.List(names) {
		errs = append(errs, validateLimitOrder(item, name, path)...)
	}
	return errs
}

// validateLimitOrder wants min ≤ default request ≤ default ≤ max.
func validateLimitOrder(item *corev1.LimitRangeItem, name corev1.ResourceName, path *field.Path) field.ErrorList {
	lists := []struct {
		field, word string
		list        corev1.ResourceList
	}{
		{"min", "min", item.Min}, {"defaultRequest", "default request", item.DefaultRequest}, {"default", "default", item.Default}, {"max", "max", item.Max},
	}
	var errs field.ErrorList
	for i, low := range lists {
		for _, high := range lists[i+1:] {
			l, ok := low.list[name]
			h, also := high.list[name]
			if ok && also && l.Cmp(h) > 0 {
				errs = append(errs, field.Invalid(path.Child(low.field).Key(string(name)), l.String(), fmt.Sprintf("%s value %s is greater than %s value %s", low.word, l.String(), high.word, h.String())))
			}
		}
	}
	if ratio, ok := item.MaxLimitRequestRatio[name]; ok && ratio.Cmp(*apiresource.NewQuantity(1, apiresource.DecimalSI)) < 0 {
		errs = append(errs, field.Invalid(path.Child("maxLimitRequestRatio").Key(string(name)), ratio.String(), fmt.Sprintf("ratio %s is less than 1", ratio.String())))
	}
	return errs
}
