package cluster

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// TestOpenAPI: every part of the API's description can be had at once, right after the start.
func TestOpenAPI(t *testing.T) {
	_, client := start(t, local(t))
	get := func(path string) ([]byte, error) {
		return client.Discovery().RESTClient().Get().RequestURI(path).SetHeader("Accept", "application/json").Do(t.Context()).Raw()
	}
	data, err := get("/openapi/v3")
	if err != nil {
		t.Fatal(err)
	}
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(data, &index); err != nil {
		t.Fatal(err)
	}
	if len(index.Paths) < 10 {
		t.Errorf("descriptions of %d group versions only", len(index.Paths))
	}
	var group sync.WaitGroup
	for path, described := range index.Paths {
		group.Go(func() {
			data, err := get(described.ServerRelativeURL)
			switch {
			case err != nil:
				t.Errorf("%s: %v", path, err)
			case !json.Valid(data) || strings.Contains(string(data), "__internal"):
				t.Errorf("%s: not JSON, or it speaks of internal versions", path)
			}
		})
	}
	group.Go(func() {
		data, err := get("/openapi/v2")
		if err != nil || !json.Valid(data) {
			t.Errorf("/openapi/v2: %v", err)
		}
	})
	group.Wait()
}
