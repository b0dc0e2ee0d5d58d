package autoscaling

import (
	"fmt"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

const (
	// defaultCPUPercent is the target of an autoscaler that names no metric.
	defaultCPUPercent = 80
	// shownMetrics is how many metrics `kubectl get` lists.
	shownMetrics = 2
)

func horizontalPodAutoscaler() *resource.Kind[*autoscalingv2.HorizontalPodAutoscaler] {
	return &resource.Kind[*autoscalingv2.HorizontalPodAutoscaler]{
		Resource:   "horizontalpodautoscalers",
		ShortNames: []string{"hpa"},
		Categories: []string{"all"},
		HasStatus:  true,
		Versions:   []schema.GroupVersion{autoscalingv1.SchemeGroupVersion},
		New:        func() *autoscalingv2.HorizontalPodAutoscaler { return &autoscalingv2.HorizontalPodAutoscaler{} },
		NewList:    func() runtime.Object { return &autoscalingv2.HorizontalPodAutoscalerList{} },
		Default:    defaultAutoscaler,
		Validate:   validateAutoscaler,
		Columns: []resource.Column[*autoscalingv2.HorizontalPodAutoscaler]{
			{Name: "Reference", Description: "What is scaled.", Value: func(h *autoscalingv2.HorizontalPodAutoscaler) any {
				return h.Spec.ScaleTargetRef.Kind + "/" + h.Spec.ScaleTargetRef.Name
			}},
			{Name: "Targets", Description: "Metrics: what they are, and what they should be.", Value: func(h *autoscalingv2.HorizontalPodAutoscaler) any { return targetsText(h) }},
			{Name: "MinPods", Description: "Pods that there are at least.", Value: func(h *autoscalingv2.HorizontalPodAutoscaler) any {
				if h.Spec.MinReplicas == nil {
					return "<unset>"
				}
				return resource.Decimal(*h.Spec.MinReplicas)
			}},
			{Name: "MaxPods", Type: "integer", Description: "Pods that there are at most.", Value: func(h *autoscalingv2.HorizontalPodAutoscaler) any { return int64(h.Spec.MaxReplicas) }},
			{Name: "Replicas", Type: "integer", Description: "Pods that there are.", Value: func(h *autoscalingv2.HorizontalPodAutoscaler) any { return int64(h.Status.CurrentReplicas) }},
			resource.Age[*autoscalingv2.HorizontalPodAutoscaler](),
		},
	}
}

func targetsText(h *autoscalingv2.HorizontalPodAutoscaler) string {
	if len(h.Spec.Metrics) == 0 {
		return resource.None
	}
	var list []string
	for i := range h.Spec.Metrics {
		current := &autoscalingv2.MetricStatus{}
		if i < len(h.Status.CurrentMetrics) {
			current = &h.Status.CurrentMetrics[i]
		}
		list = append(list, metricText(&h.Spec.Metrics[i], current))
	}
	if len(list) > shownMetrics {
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:shownMetrics], ", "), len(list)-shownMetrics)
	}
	return strings.Join(list, ", ")
}

func metricText(m *autoscalingv2.MetricSpec, current *autoscalingv2.MetricStatus) string {
	var status *autoscalingv2.MetricValueStatus
	switch {
	case m.Resource != nil:
		if current.Resource != nil {
			status = &current.Resource.Current
		}
		return string(m.Resource.Name) + ": " + valueText(&m.Resource.Target, status)
	case m.ContainerResource != nil:
		if current.ContainerResource != nil {
			status = &current.ContainerResource.Current
		}
		return string(m.ContainerResource.Name) + ": " + valueText(&m.ContainerResource.Target, status)
	case m.Pods != nil:
		if current.Pods != nil {
			status = &current.Pods.Current
		}
		return valueText(&m.Pods.Target, status)
	case m.Object != nil:
		if current.Object != nil {
			status = &current.Object.Current
		}
		return valueText(&m.Object.Target, status)
	case m.External != nil:
		if current.External != nil {
			status = &current.External.Current
		}
		return valueText(&m.External.Target, status)
	}
	return "<unknown type>"
}

func valueText(target *autoscalingv2.MetricTarget, current *autoscalingv2.MetricValueStatus) string {
	is := "<unknown>"
	if current == nil {
		current = &autoscalingv2.MetricValueStatus{}
	}
	switch {
	case target.AverageUtilization != nil:
		if current.AverageUtilization != nil {
			is = fmt.Sprintf("%d%%", *current.AverageUtilization)
		}
		return fmt.Sprintf("%s/%d%%", is, *target.AverageUtilization)
	case target.AverageValue != nil:
		if current.AverageValue != nil {
			is = current.AverageValue.String()
		}
		return fmt.Sprintf("%s/%s (avg)", is, target.AverageValue)
	case target.Value != nil:
		if current.Value != nil {
			is = current.Value.String()
		}
		return fmt.Sprintf("%s/%s", is, target.Value)
	}
	return is + "/<auto>"
}

func defaultAutoscaler(h *autoscalingv2.HorizontalPodAutoscaler) {
	if h.Spec.MinReplicas == nil {
		h.Spec.MinReplicas = ptr.To[int32](1)
	}
	if len(h.Spec.Metrics) == 0 {
		h.Spec.Metrics = []autoscalingv2.MetricSpec{cpuMetric(defaultCPUPercent)}
	}
	if h.Spec.Behavior == nil {
		return
	}
	if up := h.Spec.Behavior.ScaleUp; up != nil {
		defaultRules(up, 0, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15},
			autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	}
	if down := h.Spec.Behavior.ScaleDown; down != nil {
		defaultRules(down, -1, autoscalingv2.HPAScalingPolicy{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15})
	}
}

// defaultRules fills in one direction. The window of scaling down is a setting of the controller, so that a negative one here leaves it open.
func defaultRules(r *autoscalingv2.HPAScalingRules, window int32, policies ...autoscalingv2.HPAScalingPolicy) {
	if r.SelectPolicy == nil {
		r.SelectPolicy = ptr.To(autoscalingv2.MaxChangePolicySelect)
	}
	if r.StabilizationWindowSeconds == nil && window >= 0 {
		r.StabilizationWindowSeconds = &window
	}
	if len(r.Policies) == 0 {
		r.Policies = policies
	}
}

func cpuMetric(percent int32) autoscalingv2.MetricSpec {
	return autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: &percent},
	}}
}
