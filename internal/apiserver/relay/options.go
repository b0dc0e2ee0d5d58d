package relay

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// RegisterOptions teaches the scheme to read the options of this package's sub-resources from the query of a URL.
func RegisterOptions(scheme *runtime.Scheme) error {
	for _, options := range []any{
		&corev1.PodLogOptions{}, &corev1.PodExecOptions{}, &corev1.PodAttachOptions{}, &corev1.PodPortForwardOptions{},
		&corev1.PodProxyOptions{}, &corev1.NodeProxyOptions{}, &corev1.ServiceProxyOptions{},
	} {
		err := scheme.AddConversionFunc((*url.Values)(nil), options, func(in, out any, _ conversion.Scope) error {
			return decodeQuery(*in.(*url.Values), out)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// decodeQuery sets the fields of the struct that out points to from the parameters of their JSON names.
func decodeQuery(query url.Values, out any) error {
	v := reflect.ValueOf(out).Elem()
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		values, ok := query[name]
		if name == "" || !ok || len(values) == 0 {
			continue
		}
		if err := decodeField(v.Field(i), values); err != nil {
			return fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	return nil
}

func decodeField(field reflect.Value, values []string) error {
	switch field.Interface().(type) {
	case *metav1.Time:
		t := &metav1.Time{}
		field.Set(reflect.ValueOf(t))
		return t.UnmarshalQueryParameter(values[0])
	case []string:
		field.Set(reflect.ValueOf(values))
		return nil
	}
	switch field.Kind() {
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return decodeField(field.Elem(), values)
	case reflect.String:
		field.SetString(values[0])
	case reflect.Bool:
		// A flag that is there without a value is set.
		field.SetBool(values[0] != "0" && !strings.EqualFold(values[0], "false"))
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(values[0], 10, field.Type().Bits())
		field.SetInt(n)
		return err
	case reflect.Slice:
		for _, value := range values {
			item := reflect.New(field.Type().Elem()).Elem()
			if err := decodeField(item, []string{value}); err != nil {
				return err
			}
			field.Set(reflect.Append(field, item))
		}
	default:
		return fmt.Errorf("a %s cannot be given in a query", field.Type())
	}
	return nil
}
