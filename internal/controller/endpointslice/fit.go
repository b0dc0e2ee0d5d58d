package endpointslice

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// perSlice is how many endpoints a slice holds at most.
const perSlice = 100

// changes is what must be written.
type changes struct {
	create, update, remove []*discoveryv1.EndpointSlice
}

// fit finds the fewest changes that turn the slices that are there into the groups that are wanted.
func fit(service *corev1.Service, groups map[string]*group, present []*discoveryv1.EndpointSlice) changes {
	var out changes
	slices.SortFunc(present, func(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) })
	byGroup := map[string][]*discoveryv1.EndpointSlice{}
	for _, s := range present {
		key := groupKey(s.AddressType, s.Ports)
		if groups[key] == nil {
			out.remove = append(out.remove, s)
			continue
		}
		byGroup[key] = append(byGroup[key], s)
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		out.fitGroup(service, groups[key], byGroup[key])
	}
	// A slice of an address family that is wanted with other ports can be reused: fewer objects come and go.
	out.reuse()
	return out
}

func (c *changes) fitGroup(service *corev1.Service, g *group, present []*discoveryv1.EndpointSlice) {
	left := maps.Clone(g.endpoints)
	kept := make([]*discoveryv1.EndpointSlice, len(present))
	for i, s := range present {
		kept[i] = s.DeepCopy()
		kept[i].Endpoints = nil
		for _, e := range s.Endpoints {
			uid := uidOf(&e)
			if wanted, found := left[uid]; found {
				kept[i].Endpoints = append(kept[i].Endpoints, wanted)
				delete(left, uid)
			}
		}
	}
	rest := fill(kept, present, left)
	full := 0
	for i, s := range kept {
		switch {
		case len(s.Endpoints) == 0 && (len(g.endpoints) > 0 || full > 0):
			c.remove = append(c.remove, present[i])
			continue
		case decorate(service, s) || !equality.Semantic.DeepEqual(s.Endpoints, present[i].Endpoints):
			c.update = append(c.update, s)
		}
		full++
	}
	for len(rest) > 0 || full == 0 {
		n := min(perSlice, len(rest))
		s := newSlice(service, g)
		for _, uid := range rest[:n] {
			s.Endpoints = append(s.Endpoints, left[uid])
		}
		rest = rest[n:]
		c.create = append(c.create, s)
		full++
	}
}

// fill puts new endpoints into the room that there is and returns the UIDs of the rest. Slices that change anyway come first, then the fullest, so
// that few slices change and few stay.
func fill(kept, present []*discoveryv1.EndpointSlice, more map[string]discoveryv1.Endpoint) (rest []string) {
	rest = slices.Sorted(maps.Keys(more))
	untouched := map[*discoveryv1.EndpointSlice]int{}
	for i, s := range kept {
		if len(s.Endpoints) == len(present[i].Endpoints) {
			untouched[s] = 1
		}
	}
	order := slices.Clone(kept)
	slices.SortStableFunc(order, func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(untouched[a], untouched[b]), cmp.Compare(len(b.Endpoints), len(a.Endpoints)))
	})
	for _, s := range order {
		for len(rest) > 0 && len(s.Endpoints) < perSlice {
			s.Endpoints = append(s.Endpoints, more[rest[0]])
			rest = rest[1:]
		}
	}
	return rest
}

// reuse turns pairs of a slice to be removed and one to be made into updates.
func (c *changes) reuse() {
	for i := 0; i < len(c.create); {
		wanted := c.create[i]
		j := slices.IndexFunc(c.remove, func(s *discoveryv1.EndpointSlice) bool { return s.AddressType == wanted.AddressType })
		if j < 0 {
			i++
			continue
		}
		updated := c.remove[j].DeepCopy()
		updated.Endpoints, updated.Ports, updated.Labels = wanted.Endpoints, wanted.Ports, wanted.Labels
		c.update = append(c.update, updated)
		c.create = slices.Delete(c.create, i, i+1)
		c.remove = slices.Delete(c.remove, j, j+1)
	}
}

func uidOf(e *discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return ""
	}
	return string(e.TargetRef.UID)
}

func newSlice(service *corev1.Service, g *group) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, GenerateName: service.Name + "-",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(service, corev1.SchemeGroupVersion.WithKind("Service"))},
		},
		AddressType: g.family, Ports: g.ports, Endpoints: []discoveryv1.Endpoint{},
	}
	decorate(service, s)
	return s
}

// decorate gives the slice the labels of the Service and those that tell what it is. It tells whether that changed anything.
func decorate(service *corev1.Service, s *discoveryv1.EndpointSlice) bool {
	labels := map[string]string{}
	for key, value := range service.Labels {
		if key != discoveryv1.LabelServiceName && key != discoveryv1.LabelManagedBy && key != corev1.IsHeadlessService {
			labels[key] = value
		}
	}
	labels[discoveryv1.LabelServiceName], labels[discoveryv1.LabelManagedBy] = service.Name, ManagedBy
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		labels[corev1.IsHeadlessService] = ""
	}
	if maps.Equal(labels, s.Labels) {
		return false
	}
	s.Labels = labels
	return true
}
