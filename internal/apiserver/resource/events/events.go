// Package events describes the group events.k8s.io: events in the form of events.k8s.io/v1, stored as those of the core group.
package events

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// Group returns the group. Event is the kind of the core group, whose storage is shown.
func Group(event resource.Description) resource.Group {
	return resource.Group{
		GroupVersion: eventsv1.SchemeGroupVersion,
		AddToScheme:  addToScheme,
		Kinds:        []resource.Description{event},
		Hub:          map[string]runtime.Object{"Event": &corev1.Event{}, "EventList": &corev1.EventList{}},
	}
}

func addToScheme(s *runtime.Scheme) error {
	if err := eventsv1.AddToScheme(s); err != nil {
		return err
	}
	for _, c := range []struct {
		from, to any
		convert  conversion.ConversionFunc
	}{
		{(*eventsv1.Event)(nil), (*corev1.Event)(nil), func(a, b any, _ conversion.Scope) error {
			toCore(a.(*eventsv1.Event), b.(*corev1.Event))
			return nil
		}},
		{(*corev1.Event)(nil), (*eventsv1.Event)(nil), func(a, b any, _ conversion.Scope) error {
			fromCore(a.(*corev1.Event), b.(*eventsv1.Event))
			return nil
		}},
		{(*eventsv1.EventList)(nil), (*corev1.EventList)(nil), func(a, b any, _ conversion.Scope) error {
			in, out := a.(*eventsv1.EventList), b.(*corev1.EventList)
			out.ListMeta, out.Items = in.ListMeta, make([]corev1.Event, len(in.Items))
			for i := range in.Items {
				toCore(&in.Items[i], &out.Items[i])
			}
			return nil
		}},
		{(*corev1.EventList)(nil), (*eventsv1.EventList)(nil), func(a, b any, _ conversion.Scope) error {
			in, out := a.(*corev1.EventList), b.(*eventsv1.EventList)
			out.ListMeta, out.Items = in.ListMeta, make([]eventsv1.Event, len(in.Items))
			for i := range in.Items {
				fromCore(&in.Items[i], &out.Items[i])
			}
			return nil
		}},
	} {
		if err := s.AddConversionFunc(c.from, c.to, c.convert); err != nil {
			return err
		}
	}
	return nil
}

func toCore(in *eventsv1.Event, out *corev1.Event) {
	out.ObjectMeta = in.ObjectMeta
	out.EventTime, out.Action, out.Reason, out.Type = in.EventTime, in.Action, in.Reason, in.Type
	out.InvolvedObject, out.Related, out.Message = in.Regarding, in.Related, in.Note
	out.ReportingController, out.ReportingInstance = in.ReportingController, in.ReportingInstance
	out.Source, out.Count = in.DeprecatedSource, in.DeprecatedCount
	out.FirstTimestamp, out.LastTimestamp = in.DeprecatedFirstTimestamp, in.DeprecatedLastTimestamp
	out.Series = nil
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}

func fromCore(in *corev1.Event, out *eventsv1.Event) {
	out.ObjectMeta = in.ObjectMeta
	out.EventTime, out.Action, out.Reason, out.Type = in.EventTime, in.Action, in.Reason, in.Type
	out.Regarding, out.Related, out.Note = in.InvolvedObject, in.Related, in.Message
	out.ReportingController, out.ReportingInstance = in.ReportingController, in.ReportingInstance
	out.DeprecatedSource, out.DeprecatedCount = in.Source, in.Count
	out.DeprecatedFirstTimestamp, out.DeprecatedLastTimestamp = in.FirstTimestamp, in.LastTimestamp
	out.Series = nil
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
}
