package cluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const redacted = "(left out)"

// secretFields are fields whose values people put secrets into, wherever they stand in an object.
var secretFields = map[string]bool{
	"data": true, "stringData": true, "binaryData": true, "env": true, "args": true, "command": true, "token": true, "password": true,
	"annotations": true, "caBundle": true, "request": true, "certificate": true, "httpHeaders": true, "parameters": true,
}

// redact leaves out of an object the values that may be secret, and keeps their names and how long they are: a missing key is often what is wrong.
// An object of a kind that is not Kubernetes' own may hold anything: of its fields only the names stay.
func redact(object *unstructured.Unstructured) {
	object.SetManagedFields(nil)
	custom := !knownGroup(object.GroupVersionKind().Group)
	for name, value := range object.Object {
		switch {
		case name == "apiVersion" || name == "kind":
		case name == "metadata" || name == "status" && !custom:
			object.Object[name] = redactFields(name, value)
		case custom:
			object.Object[name] = blank(value)
		default:
			object.Object[name] = redactFields(name, value)
		}
	}
}

// knownGroup reports whether a group is one of Kubernetes' own.
func knownGroup(group string) bool {
	return !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
}

func redactFields(name string, value any) any {
	if secretFields[name] {
		return blank(value)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = redactFields(key, inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = redactFields("", inner)
		}
	}
	return value
}

// blank keeps the shape of a value and the names in it.
func blank(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if name, isName := inner.(string); !isName || key != "name" || name == "" {
				v[key] = blank(inner)
			}
		}
	case []any:
		for i, inner := range v {
			v[i] = blank(inner)
		}
	case string:
		return redacted
	}
	return value
}
