package apiserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRequestsThatWouldGrow: what is small to send and large to understand is refused, and takes no more memory than other requests (do looks at that).
func TestRequestsThatWouldGrow(t *testing.T) {
	z := &fuzzed{api: startAPI(t)}
	const maps, one = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"
	z.do(t, http.MethodPost, maps, nil, []byte(`{"metadata":{"name":"a"},"data":{"k":"`+strings.Repeat("v", 1000)+`"}}`))
	const jsonType, yamlType, patch = "application/json", "application/yaml", "application/json-patch+json"
	for name, c := range map[string]struct {
		method, path, media, body string
		want                      int
	}{
		"a large body":         {http.MethodPost, maps, jsonType, `{"metadata":{"name":"b"},"data":{"k":"` + strings.Repeat("v", 4<<20) + `"}}`, http.StatusRequestEntityTooLarge},
		"a large patch":        {http.MethodPatch, one, "application/merge-patch+json", `{"data":{"k":"` + strings.Repeat("v", 4<<20) + `"}}`, http.StatusRequestEntityTooLarge},
		"a large apply":        {http.MethodPatch, one + "?fieldManager=f", "application/apply-patch+yaml", "data: {k: " + strings.Repeat("v", 4<<20) + "}", http.StatusRequestEntityTooLarge},
		"deep JSON":            {http.MethodPost, maps, jsonType, strings.Repeat(`{"data":`, 300000), http.StatusBadRequest},
		"deep YAML":            {http.MethodPost, maps, yamlType, strings.Repeat("[", 300000), http.StatusBadRequest},
		"aliases of aliases":   {http.MethodPost, maps, yamlType, aliases(), http.StatusBadRequest},
		"copies of copies":     {http.MethodPatch, one, patch, copies(40), http.StatusUnprocessableEntity},
		"many operations":      {http.MethodPatch, one, patch, "[" + strings.Repeat(`{"op":"test","path":"/kind","value":"x"},`, 10001) + `{"op":"remove","path":"/data"}]`, http.StatusRequestEntityTooLarge},
		"protobuf that claims": {http.MethodPost, maps, "application/vnd.kubernetes.protobuf", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\xff\xff\xff\xff\x07", http.StatusBadRequest},
	} {
		w := z.do(t, c.method, c.path, map[string]string{"Content-Type": c.media}, []byte(c.body))
		if w.Code != c.want {
			t.Errorf("%s: %d %.300s, want %d", name, w.Code, w.Body, c.want)
		}
	}
}

// aliases is a YAML document each line of which is nine times the one before.
func aliases() string {
	text := "a0: &a0 [x]\n"
	for i := range 12 {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 9), ","))
	}
	return text
}

// copies is a JSON patch that puts the data into themselves again and again.
func copies(n int) string {
	var operations []string
	for i := range n {
		operations = append(operations, fmt.Sprintf(`{"op":"copy","from":"/data","path":"/data/c%d"}`, i))
	}
	return "[" + strings.Join(operations, ",") + "]"
}
