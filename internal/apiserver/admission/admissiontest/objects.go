package admissiontest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// parse reads documents of YAML. A kind of the core group may leave out its apiVersion, an object its namespace, which then is "default".
func parse(t testing.TB, text string) []runtime.Object {
	var out []runtime.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		var fields map[string]any
		must(t, yaml.Unmarshal([]byte(document), &fields))
		if len(fields) == 0 {
			continue
		}
		if fields["apiVersion"] == nil {
			fields["apiVersion"] = "v1"
		}
		if metadata, ok := fields["metadata"].(map[string]any); ok && metadata["namespace"] == nil && namespaced(fields["kind"]) {
			metadata["namespace"] = "default"
		}
		data, err := json.Marshal(fields)
		must(t, err)
		obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		out = append(out, obj)
	}
	return out
}

// namespaced: the kinds of the whole cluster that plugins look at are nodes, volumes and classes.
func namespaced(kind any) bool {
	name, _ := kind.(string)
	return !strings.HasSuffix(name, "Class") && name != "Node" && name != "PersistentVolume" && name != "Namespace"
}

// flatten returns the values of an object by their paths.
func flatten(t testing.TB, obj runtime.Object) map[string]string {
	data, err := json.Marshal(obj)
	must(t, err)
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	must(t, decoder.Decode(&value))
	out := map[string]string{}
	collect(out, "", value)
	return out
}

func collect(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			collect(out, strings.TrimPrefix(path+"."+key, "."), item)
		}
	case []any:
		for i, item := range v {
			collect(out, fmt.Sprintf("%s[%d]", path, i), item)
		}
	case nil:
	default:
		out[path] = fmt.Sprint(v)
	}
}

func difference(before, after map[string]string) string {
	var lines []string
	for path := range before {
		if _, ok := after[path]; !ok {
			lines = append(lines, "- "+path)
		}
	}
	for path, value := range after {
		if was, ok := before[path]; !ok || was != value {
			lines = append(lines, fmt.Sprintf("= %s: %s", path, value))
		}
	}
	if len(lines) == 0 {
		return "admitted\n"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}
