package endpointslice

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", New)
}

// Whatever endpoints come and go, every wanted one is in exactly one slice, none is too full, and an unchanged picture changes nothing.
func TestFit(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	rapid.Check(t, func(t *rapid.T) {
		var present []*discoveryv1.EndpointSlice
		for round := range rapid.IntRange(1, 4).Draw(t, "rounds") {
			g := &group{family: discoveryv1.AddressTypeIPv4, endpoints: map[string]discoveryv1.Endpoint{}}
			from, n := rapid.IntRange(0, 200).Draw(t, "from"), rapid.IntRange(0, 350).Draw(t, "endpoints")
			for i := range n {
				uid := fmt.Sprint("uid", from+i)
				g.endpoints[uid] = discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{UID: types.UID(uid)}}
			}
			groups := map[string]*group{groupKey(g.family, nil): g}
			present = applied(present, fit(service, groups, present), round)
			seen := map[string]bool{}
			for _, s := range present {
				if len(s.Endpoints) > perSlice {
					t.Fatalf("slice %s holds %d endpoints", s.Name, len(s.Endpoints))
				}
				for _, e := range s.Endpoints {
					if uid := uidOf(&e); seen[uid] {
						t.Fatalf("%s is in two slices", uid)
					}
					seen[uidOf(&e)] = true
				}
			}
			if len(seen) != n || len(present) == 0 {
				t.Fatalf("%d endpoints in %d slices, want %d endpoints", len(seen), len(present), n)
			}
			if again := fit(service, groups, present); len(again.create)+len(again.update)+len(again.remove) > 0 {
				t.Fatalf("nothing changed, but %d slices would be written", len(again.create)+len(again.update)+len(again.remove))
			}
		}
	})
}

// applied is what is there after the changes.
func applied(present []*discoveryv1.EndpointSlice, todo changes, round int) []*discoveryv1.EndpointSlice {
	byName := map[string]*discoveryv1.EndpointSlice{}
	for _, s := range present {
		byName[s.Name] = s
	}
	for _, s := range todo.remove {
		delete(byName, s.Name)
	}
	for _, s := range todo.update {
		byName[s.Name] = s
	}
	for i, s := range todo.create {
		s.Name = fmt.Sprintf("s-%d-%d", round, i)
		byName[s.Name] = s
	}
	return slices.Collect(maps.Values(byName))
}
