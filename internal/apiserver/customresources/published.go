package customresources

import (
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	discoveryendpoint "k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Places is where the main server tells about its API.
type Places struct {
	// Groups is the list at /apis.
	Groups discovery.GroupManager
	// V3 is the description by group version. V2 is that of all; Builtin is the part of it that has no custom resources.
	V3      *handler3.OpenAPIService
	V2      *handler.OpenAPIService
	Builtin cached.Value[*spec.Swagger]
	// Taken has the paths of built-in groups and group versions, "apis/GROUP[/VERSION]". They stay as they are: a definition may be of a built-in group.
	Taken map[string]bool
}

// published keeps what is told about custom resources in step with their definitions.
type published struct {
	lister listers.CustomResourceDefinitionLister
	places Places

	mu sync.Mutex
	// described has the descriptions of each definition that is established, by its name.
	described map[string]*description
	// groups are those in Places.Groups that came from here.
	groups map[string]bool
}

func newPublished(lister listers.CustomResourceDefinitionLister) *published {
	return &published{lister: lister, described: map[string]*description{}, groups: map[string]bool{}}
}

// Publish says where to tell of custom resources. It is called once, before Sync.
func (s *Server) Publish(places Places) {
	places.Groups.AddGroup(groupOf(apiextensionsv1.GroupName, []string{apiextensionsv1.SchemeGroupVersion.Version}))
	s.published.places = places
}

func (p *published) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { p.changed(obj.(*apiextensionsv1.CustomResourceDefinition)) },
		UpdateFunc: func(_, obj any) { p.changed(obj.(*apiextensionsv1.CustomResourceDefinition)) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			p.remove(obj.(*apiextensionsv1.CustomResourceDefinition))
		},
	}
}

func (p *published) changed(crd *apiextensionsv1.CustomResourceDefinition) {
	if !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		p.remove(crd)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.described[crd.Name]
	if last != nil && last.uid == crd.UID && last.generation == crd.Generation {
		return
	}
	p.described[crd.Name] = describe(crd)
	p.publish(crd.Spec.Group, append(last.paths(), p.described[crd.Name].paths()...))
}

func (p *published) remove(crd *apiextensionsv1.CustomResourceDefinition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.described[crd.Name]
	if last == nil {
		return
	}
	delete(p.described, crd.Name)
	p.publish(crd.Spec.Group, last.paths())
}

// publish tells what is new of a group and of its versions, which are given by their paths.
func (p *published) publish(group string, paths []string) {
	p.publishGroup(group)
	for _, path := range paths {
		if p.places.Taken[path] {
			continue
		}
		if parts := p.partsV3(path); len(parts) > 0 {
			p.places.V3.UpdateGroupVersionLazy(path, mergedV3(parts))
		} else {
			p.places.V3.DeleteGroupVersion(path)
		}
	}
	p.places.V2.UpdateSpecLazy(mergedV2(p.places.Builtin, p.partsV2()))
}

func (p *published) publishGroup(group string) {
	if p.places.Taken["apis/"+group] {
		return
	}
	served := p.versions(group)
	switch {
	case len(served) > 0:
		p.groups[group] = true
		p.places.Groups.AddGroup(groupOf(group, served))
	case p.groups[group]:
		delete(p.groups, group)
		p.places.Groups.RemoveGroup(group)
	}
}

// versions are the versions of a group that are served, the preferred one first.
func (p *published) versions(group string) []string {
	// The cache lists without an error.
	crds, _ := p.lister.List(labels.Everything())
	var found []string
	for _, crd := range crds {
		if crd.Spec.Group != group || p.described[crd.Name] == nil {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if v.Served && !slices.Contains(found, v.Name) {
				found = append(found, v.Name)
			}
		}
	}
	slices.SortFunc(found, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return found
}

func groupOf(name string, versions []string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	for _, v := range versions {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	group.PreferredVersion = group.Versions[0]
	return group
}

// definitionsPriority and definitionsVersionPriority are those of kube-apiserver: after the built-in groups and before all custom ones.
const (
	definitionsPriority        = 16700
	definitionsVersionPriority = 15
)

func setPriority(manager discoveryendpoint.ResourceManager) {
	gv := metav1.GroupVersion{Group: apiextensionsv1.GroupName, Version: apiextensionsv1.SchemeGroupVersion.Version}
	manager.SetGroupVersionPriority(gv, definitionsPriority, definitionsVersionPriority)
}
