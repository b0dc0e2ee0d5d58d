package resource

import (
	"reflect"
	"strings"
)

// This file knows the shape that all Kubernetes types share: a struct of TypeMeta, ObjectMeta, what is wished (mostly Spec, sometimes
// several fields) and Status. It works by reflection so that no kind has to say it again.

// content calls f with each field that is neither metadata nor status.
func content(obj any, f func(index int, field reflect.StructField)) {
	t := reflect.TypeOf(obj).Elem()
	for i := range t.NumField() {
		switch t.Field(i).Name {
		case "TypeMeta", "ObjectMeta", "Status":
		default:
			f(i, t.Field(i))
		}
	}
}

// contentFields returns the JSON names of what is neither metadata nor status.
func contentFields(obj any) []string {
	var names []string
	content(obj, func(_ int, field reflect.StructField) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	})
	return names
}

func contentDiffers(obj, old any) bool {
	a, b := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	differs := false
	content(obj, func(i int, _ reflect.StructField) {
		differs = differs || !semanticEqual(a.Field(i).Interface(), b.Field(i).Interface())
	})
	return differs
}

// keepContent puts old's content into obj.
func keepContent(obj, old any) {
	a, b := reflect.ValueOf(obj).Elem(), reflect.ValueOf(old).Elem()
	content(obj, func(i int, _ reflect.StructField) { a.Field(i).Set(b.Field(i)) })
}

func clearStatus(obj any) {
	status := reflect.ValueOf(obj).Elem().FieldByName("Status")
	status.SetZero()
}

func keepStatus(obj, old any) {
	reflect.ValueOf(obj).Elem().FieldByName("Status").Set(reflect.ValueOf(old).Elem().FieldByName("Status"))
}
