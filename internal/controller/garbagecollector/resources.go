package garbagecollector

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// resource is one kind of object as the API server serves it.
type resource struct {
	schema.GroupVersionResource
	kind       string
	namespaced bool
}

// resources is what discovery says.
type resources struct {
	// byKind finds the resource of an owner reference's apiVersion and kind.
	byKind map[schema.GroupVersionKind]resource
	// collected are those whose objects can be watched and deleted, each in one version only.
	collected map[schema.GroupResource]resource
}

// ignored are resources that own nothing, are owned by nothing, and are many.
var ignored = map[schema.GroupResource]bool{
	{Group: "", Resource: "events"}:              true,
	{Group: "events.k8s.io", Resource: "events"}: true,
}

// readResources asks discovery. With an error it may still return the groups that answered.
func readResources(d discovery.DiscoveryInterface) (*resources, error) {
	groups, lists, err := d.ServerGroupsAndResources()
	if len(groups) == 0 {
		if err == nil {
			err = fmt.Errorf("discovery names no API group")
		}
		return nil, err
	}
	preferred := map[string]string{}
	for _, group := range groups {
		preferred[group.Name] = group.PreferredVersion.Version
	}
	table := &resources{byKind: map[schema.GroupVersionKind]resource{}, collected: map[schema.GroupResource]resource{}}
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			err = parseErr
			continue
		}
		for i := range list.APIResources {
			table.add(gv, &list.APIResources[i], preferred[gv.Group] == gv.Version)
		}
	}
	return table, err
}

func (t *resources) add(gv schema.GroupVersion, r *metav1.APIResource, preferred bool) {
	if strings.Contains(r.Name, "/") {
		return // a sub-resource
	}
	entry := resource{gv.WithResource(r.Name), r.Kind, r.Namespaced}
	t.byKind[gv.WithKind(r.Kind)] = entry
	for _, verb := range []string{"list", "watch", "delete"} {
		if !slices.Contains(r.Verbs, verb) {
			return
		}
	}
	gr := entry.GroupResource()
	if _, known := t.collected[gr]; ignored[gr] || (known && !preferred) {
		return
	}
	t.collected[gr] = entry
}
