package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// Annotations by which autoscaling/v1 carries what it has no fields for, as in every Kubernetes cluster.
const (
	metricsAnnotation        = "autoscaling.alpha.kubernetes.io/metrics"
	currentMetricsAnnotation = "autoscaling.alpha.kubernetes.io/current-metrics"
	conditionsAnnotation     = "autoscaling.alpha.kubernetes.io/conditions"
	behaviorAnnotation       = "autoscaling.alpha.kubernetes.io/behavior"
)

func addV1ToScheme(s *runtime.Scheme) error {
	if err := autoscalingv1.AddToScheme(s); err != nil {
		return err
	}
	s.AddTypeDefaultingFunc(&autoscalingv1.HorizontalPodAutoscaler{}, func(obj any) {
		if h := obj.(*autoscalingv1.HorizontalPodAutoscaler); h.Spec.MinReplicas == nil {
			h.Spec.MinReplicas = ptr.To[int32](1)
		}
	})
	for _, c := range []struct {
		from, to any
		convert  conversion.ConversionFunc
	}{
		{(*autoscalingv1.HorizontalPodAutoscaler)(nil), (*autoscalingv2.HorizontalPodAutoscaler)(nil), func(a, b any, _ conversion.Scope) error {
			return toV2(a.(*autoscalingv1.HorizontalPodAutoscaler), b.(*autoscalingv2.HorizontalPodAutoscaler))
		}},
		{(*autoscalingv2.HorizontalPodAutoscaler)(nil), (*autoscalingv1.HorizontalPodAutoscaler)(nil), func(a, b any, _ conversion.Scope) error {
			return toV1(a.(*autoscalingv2.HorizontalPodAutoscaler), b.(*autoscalingv1.HorizontalPodAutoscaler))
		}},
		{(*autoscalingv1.HorizontalPodAutoscalerList)(nil), (*autoscalingv2.HorizontalPodAutoscalerList)(nil), func(a, b any, _ conversion.Scope) error {
			in, out := a.(*autoscalingv1.HorizontalPodAutoscalerList), b.(*autoscalingv2.HorizontalPodAutoscalerList)
			out.ListMeta = in.ListMeta
			return convertItems(in.Items, &out.Items, toV2)
		}},
		{(*autoscalingv2.HorizontalPodAutoscalerList)(nil), (*autoscalingv1.HorizontalPodAutoscalerList)(nil), func(a, b any, _ conversion.Scope) error {
			in, out := a.(*autoscalingv2.HorizontalPodAutoscalerList), b.(*autoscalingv1.HorizontalPodAutoscalerList)
			out.ListMeta = in.ListMeta
			return convertItems(in.Items, &out.Items, toV1)
		}},
	} {
		if err := s.AddConversionFunc(c.from, c.to, c.convert); err != nil {
			return err
		}
	}
	return nil
}

func convertItems[A, B any](in []A, out *[]B, convert func(*A, *B) error) error {
	*out = make([]B, len(in))
	for i := range in {
		if err := convert(&in[i], &(*out)[i]); err != nil {
			return err
		}
	}
	return nil
}

// toV1 keeps the metric that v1 knows, CPU in percent, in its field and the others in an annotation.
func toV1(in *autoscalingv2.HorizontalPodAutoscaler, out *autoscalingv1.HorizontalPodAutoscaler) error {
	out.ObjectMeta = in.ObjectMeta
	out.Spec.ScaleTargetRef = autoscalingv1.CrossVersionObjectReference(in.Spec.ScaleTargetRef)
	out.Spec.MinReplicas, out.Spec.MaxReplicas = in.Spec.MinReplicas, in.Spec.MaxReplicas
	out.Status.ObservedGeneration, out.Status.LastScaleTime = in.Status.ObservedGeneration, in.Status.LastScaleTime
	out.Status.CurrentReplicas, out.Status.DesiredReplicas = in.Status.CurrentReplicas, in.Status.DesiredReplicas
	var metrics []autoscalingv2.MetricSpec
	for _, m := range in.Spec.Metrics {
		if out.Spec.TargetCPUUtilizationPercentage == nil && isCPUPercent(m) {
			out.Spec.TargetCPUUtilizationPercentage = m.Resource.Target.AverageUtilization
			continue
		}
		metrics = append(metrics, m)
	}
	var current []autoscalingv2.MetricStatus
	for _, m := range in.Status.CurrentMetrics {
		if r := m.Resource; r != nil && r.Name == corev1.ResourceCPU && r.Current.AverageUtilization != nil {
			out.Status.CurrentCPUUtilizationPercentage = r.Current.AverageUtilization
			// The absolute value has no field in v1, so that the whole is annotated as well.
		}
		current = append(current, m)
	}
	return annotate(&out.ObjectMeta.Annotations, map[string]any{
		metricsAnnotation: metrics, currentMetricsAnnotation: current, conditionsAnnotation: in.Status.Conditions, behaviorAnnotation: in.Spec.Behavior,
	})
}

func isCPUPercent(m autoscalingv2.MetricSpec) bool {
	return m.Type == autoscalingv2.ResourceMetricSourceType && m.Resource != nil && m.Resource.Name == corev1.ResourceCPU && m.Resource.Target.AverageUtilization != nil
}

func annotate(annotations *map[string]string, values map[string]any) error {
	out := maps.Clone(*annotations)
	for key, value := range values {
		delete(out, key)
		data, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if text := string(data); text == "null" || text == "[]" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = string(data)
	}
	*annotations = out
	return nil
}

func toV2(in *autoscalingv1.HorizontalPodAutoscaler, out *autoscalingv2.HorizontalPodAutoscaler) error {
	out.ObjectMeta = in.ObjectMeta
	out.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference(in.Spec.ScaleTargetRef)
	out.Spec.MinReplicas, out.Spec.MaxReplicas = in.Spec.MinReplicas, in.Spec.MaxReplicas
	out.Status.ObservedGeneration, out.Status.LastScaleTime = in.Status.ObservedGeneration, in.Status.LastScaleTime
	out.Status.CurrentReplicas, out.Status.DesiredReplicas = in.Status.CurrentReplicas, in.Status.DesiredReplicas
	out.Annotations = maps.Clone(in.Annotations)
	for key, target := range map[string]any{
		metricsAnnotation: &out.Spec.Metrics, currentMetricsAnnotation: &out.Status.CurrentMetrics, conditionsAnnotation: &out.Status.Conditions, behaviorAnnotation: &out.Spec.Behavior,
	} {
		text, ok := out.Annotations[key]
		if !ok {
			continue
		}
		delete(out.Annotations, key)
		if err := json.Unmarshal([]byte(text), target); err != nil {
			return fmt.Errorf("annotation %s of HorizontalPodAutoscaler %s/%s: %w", key, in.Namespace, in.Name, err)
		}
	}
	if percent := in.Spec.TargetCPUUtilizationPercentage; percent != nil {
		out.Spec.Metrics = append([]autoscalingv2.MetricSpec{cpuMetric(*percent)}, out.Spec.Metrics...)
	}
	if len(out.Spec.Metrics) == 0 {
		out.Spec.Metrics = []autoscalingv2.MetricSpec{cpuMetric(defaultCPUPercent)}
	}
	if percent := in.Status.CurrentCPUUtilizationPercentage; percent != nil && len(out.Status.CurrentMetrics) == 0 {
		out.Status.CurrentMetrics = []autoscalingv2.MetricStatus{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricStatus{
			Name: corev1.ResourceCPU, Current: autoscalingv2.MetricValueStatus{AverageUtilization: percent},
		}}}
	}
	return nil
}
