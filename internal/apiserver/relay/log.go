package relay

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrest "k8s.io/apiserver/pkg/registry/generic/rest"
)

// logStorage is pods/log.
type logStorage struct{ pods }

// NewGetOptions implements rest.GetterWithOptions.
func (*logStorage) NewGetOptions() (runtime.Object, bool, string) {
	return &corev1.PodLogOptions{}, false, ""
}

// ProducesMIMETypes implements rest.StorageMetadata.
func (*logStorage) ProducesMIMETypes(string) []string { return []string{"text/plain"} }

// ProducesObject implements rest.StorageMetadata.
func (*logStorage) ProducesObject(string) any { return "" }

// OverrideMetricsVerb counts a followed log apart from a read one.
func (*logStorage) OverrideMetricsVerb(verb string) string {
	if verb == "GET" {
		return "CONNECT"
	}
	return verb
}

// Get implements rest.GetterWithOptions.
func (s *logStorage) Get(ctx context.Context, name string, obj runtime.Object) (runtime.Object, error) {
	options, ok := obj.(*corev1.PodLogOptions)
	if !ok {
		return nil, fmt.Errorf("pods/log takes PodLogOptions, not a %T", obj)
	}
	if errs := validateLogOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PodLogOptions").GroupKind(), name, errs)
	}
	pod, err := s.get(ctx, name)
	if err != nil {
		return nil, err
	}
	container, err := chooseContainer(pod, options.Container)
	if err != nil {
		return nil, err
	}
	location, err := s.nodes.location(ctx, pod, logQuery(options), "containerLogs", pod.Namespace, pod.Name, container)
	if err != nil {
		return nil, err
	}
	return &genericrest.LocationStreamer{
		Location:        location,
		Transport:       s.nodes.nodeTransport(),
		ContentType:     "text/plain",
		Flush:           options.Follow,
		ResponseChecker: genericrest.NewGenericHttpResponseChecker(corev1.Resource("pods/log"), name),
		RedirectChecker: genericrest.PreventRedirects,
	}, nil
}

func validateLogOptions(o *corev1.PodLogOptions) field.ErrorList {
	var errs field.ErrorList
	if o.TailLines != nil && *o.TailLines < 0 {
		errs = append(errs, field.Invalid(field.NewPath("tailLines"), *o.TailLines, "must be greater than or equal to 0"))
	}
	if o.LimitBytes != nil && *o.LimitBytes < 1 {
		errs = append(errs, field.Invalid(field.NewPath("limitBytes"), *o.LimitBytes, "must be greater than 0"))
	}
	if o.SinceSeconds != nil && o.SinceTime != nil {
		errs = append(errs, field.Forbidden(field.NewPath(""), "at most one of `sinceTime` or `sinceSeconds` may be specified"))
	}
	if o.SinceSeconds != nil && *o.SinceSeconds < 1 {
		errs = append(errs, field.Invalid(field.NewPath("sinceSeconds"), *o.SinceSeconds, "must be greater than 0"))
	}
	return errs
}

func logQuery(o *corev1.PodLogOptions) url.Values {
	q := url.Values{}
	number := func(name string, value *int64) {
		if value != nil {
			q.Set(name, strconv.FormatInt(*value, 10))
		}
	}
	flag := func(name string, value bool) {
		if value {
			q.Set(name, "true")
		}
	}
	flag("follow", o.Follow)
	flag("previous", o.Previous)
	flag("timestamps", o.Timestamps)
	number("sinceSeconds", o.SinceSeconds)
	number("tailLines", o.TailLines)
	number("limitBytes", o.LimitBytes)
	if o.SinceTime != nil {
		q.Set("sinceTime", o.SinceTime.Format(time.RFC3339))
	}
	return q
}
