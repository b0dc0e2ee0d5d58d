package translate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Field is the value of a fieldRef: a field of the pod. The host's and the pod's addresses are given, for they are not in the spec.
func Field(pod *v1.Pod, path string, podIPs, hostIPs []string) (string, error) {
	if base, key, ok := subscript(path); ok {
		switch base {
		case "metadata.labels":
			return pod.Labels[key], nil
		case "metadata.annotations":
			return pod.Annotations[key], nil
		}
		return "", fmt.Errorf("fieldPath %q does not support subscripts", path)
	}
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return formatMap(pod.Labels), nil
	case "metadata.annotations":
		return formatMap(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return first(podIPs), nil
	case "status.podIPs":
		return strings.Join(podIPs, ","), nil
	case "status.hostIP":
		return first(hostIPs), nil
	case "status.hostIPs":
		return strings.Join(hostIPs, ","), nil
	}
	return "", fmt.Errorf("unsupported fieldPath: %s", path)
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// subscript splits metadata.labels['key'].
func subscript(path string) (base, key string, ok bool) {
	base, rest, found := strings.Cut(path, "['")
	key, closed := strings.CutSuffix(rest, "']")
	return base, key, found && closed
}

// formatMap writes labels or annotations one a line, sorted, each value as a quoted Go string.
func formatMap(m map[string]string) string {
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, k+"="+strconv.Quote(m[k]))
	}
	return strings.Join(lines, "\n")
}

// ResourceField is the value of a resourceFieldRef: a request or limit of a container in units of the divisor, rounded up. A limit that
// is not set is what the node has to give.
func ResourceField(c *v1.Container, ref *v1.ResourceFieldSelector, allocatable v1.ResourceList) (string, error) {
	kind, name, ok := strings.Cut(ref.Resource, ".")
	if !ok || kind != "limits" && kind != "requests" {
		return "", fmt.Errorf("unsupported container resource: %s", ref.Resource)
	}
	list := c.Resources.Limits
	if kind == "requests" {
		list = c.Resources.Requests
	}
	value, set := list[v1.ResourceName(name)]
	if !set && kind == "limits" {
		value = allocatable[v1.ResourceName(name)]
	}
	divisor := ref.Divisor
	if divisor.IsZero() {
		divisor = resource.MustParse("1")
	}
	if name == string(v1.ResourceCPU) {
		return ceil(value.MilliValue(), divisor.MilliValue()), nil
	}
	return ceil(value.Value(), divisor.Value()), nil
}

func ceil(value, divisor int64) string {
	return strconv.FormatInt((value+divisor-1)/divisor, 10)
}
