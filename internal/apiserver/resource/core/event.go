package core

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// eventLifetime is how long events are kept: one hour, as everywhere.
const eventLifetime = time.Hour

// Event returns the kind, which events.k8s.io shows too.
func Event() *resource.Kind[*corev1.Event] {
	return &resource.Kind[*corev1.Event]{
		Resource:            "events",
		ShortNames:          []string{"ev"},
		New:                 func() *corev1.Event { return &corev1.Event{} },
		NewList:             func() runtime.Object { return &corev1.EventList{} },
		ValidateName:        validation.NameIsDNSSubdomain,
		Validate:            validateEvent,
		AllowCreateOnUpdate: true,
		TTL:                 uint64(eventLifetime / time.Second),
		Versions:            []schema.GroupVersion{eventsv1.SchemeGroupVersion},
		FieldAliases: map[string]string{
			"regarding.kind": "involvedObject.kind", "regarding.namespace": "involvedObject.namespace", "regarding.name": "involvedObject.name",
			"regarding.uid": "involvedObject.uid", "regarding.apiVersion": "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion", "regarding.fieldPath": "involvedObject.fieldPath",
			"reportingController": "reportingComponent",
		},
		Fields: map[string]func(*corev1.Event) string{
			"involvedObject.kind":            func(e *corev1.Event) string { return e.InvolvedObject.Kind },
			"involvedObject.namespace":       func(e *corev1.Event) string { return e.InvolvedObject.Namespace },
			"involvedObject.name":            func(e *corev1.Event) string { return e.InvolvedObject.Name },
			"involvedObject.uid":             func(e *corev1.Event) string { return string(e.InvolvedObject.UID) },
			"involvedObject.apiVersion":      func(e *corev1.Event) string { return e.InvolvedObject.APIVersion },
			"involvedObject.resourceVersion": func(e *corev1.Event) string { return e.InvolvedObject.ResourceVersion },
			"involvedObject.fieldPath":       func(e *corev1.Event) string { return e.InvolvedObject.FieldPath },
			"reason":                         func(e *corev1.Event) string { return e.Reason },
			"reportingComponent":             func(e *corev1.Event) string { return e.ReportingController },
			"source":                         eventSource,
			"type":                           func(e *corev1.Event) string { return e.Type },
		},
		Columns: []resource.Column[*corev1.Event]{
			{Name: "Last Seen", Description: "Time since the event was last seen.", Value: func(e *corev1.Event) any { return lastSeen(e) }},
			{Name: "Type", Description: "Normal or Warning.", Value: func(e *corev1.Event) any { return e.Type }},
			{Name: "Reason", Description: "Why, in one word.", Value: func(e *corev1.Event) any { return e.Reason }},
			{Name: "Object", Description: "What the event is about.", Value: func(e *corev1.Event) any {
				return fmt.Sprintf("%s/%s", strings.ToLower(e.InvolvedObject.Kind), e.InvolvedObject.Name)
			}},
			{Name: "Subobject", Wide: true, Description: "The part of the object that the event is about.", Value: func(e *corev1.Event) any { return e.InvolvedObject.FieldPath }},
			{Name: "Source", Wide: true, Description: "Who made the event.", Value: func(e *corev1.Event) any { return sourceText(e) }},
			{Name: "Message", Description: "What happened.", Value: func(e *corev1.Event) any { return strings.TrimSpace(e.Message) }},
			{Name: "First Seen", Wide: true, Description: "Time since the event was first seen.", Value: func(e *corev1.Event) any { return resource.Since(firstTime(e)) }},
			{Name: "Count", Type: "integer", Wide: true, Description: "How often the event was seen.", Value: func(e *corev1.Event) any { return count(e) }},
			{Name: "Name", Wide: true, Description: "Name of the event.", Value: func(e *corev1.Event) any { return e.Name }},
		},
		HideName: true,
	}
}

func validateEvent(e *corev1.Event) field.ErrorList {
	if e.InvolvedObject.Namespace == "" && (e.Namespace == metav1.NamespaceDefault || e.Namespace == metav1.NamespaceSystem) {
		return nil
	}
	if e.InvolvedObject.Namespace != e.Namespace {
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), e.InvolvedObject.Namespace, "does not match event.namespace")}
	}
	return nil
}

func eventSource(e *corev1.Event) string {
	if e.Source.Component != "" {
		return e.Source.Component
	}
	return e.ReportingController
}

func sourceText(e *corev1.Event) string {
	if e.Source.Host == "" {
		return eventSource(e)
	}
	return eventSource(e) + ", " + e.Source.Host
}

func firstTime(e *corev1.Event) metav1.Time {
	if e.FirstTimestamp.IsZero() {
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.FirstTimestamp
}

// lastSeen tells of a repeated event how often and since when.
func lastSeen(e *corev1.Event) string {
	last := e.LastTimestamp
	if last.IsZero() {
		last = firstTime(e)
	}
	if e.Series != nil {
		last = metav1.NewTime(e.Series.LastObservedTime.Time)
	}
	if count(e) > 1 {
		return fmt.Sprintf("%s (x%d over %s)", resource.Since(last), count(e), resource.Since(firstTime(e)))
	}
	return resource.Since(last)
}

func count(e *corev1.Event) int64 {
	switch {
	case e.Series != nil:
		return int64(e.Series.Count)
	case e.Count > 1:
		return int64(e.Count)
	}
	return 1
}
