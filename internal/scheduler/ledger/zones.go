package ledger

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// zoneOrder remembers in which order zones and nodes were first seen. Only the order in which kube-scheduler walks the
// nodes depends on it.
type zoneOrder struct {
	seen map[string]*zoneEntry
	tick uint64
}

type zoneEntry struct {
	since uint64
	nodes int
}

func newZoneOrder() zoneOrder { return zoneOrder{seen: map[string]*zoneEntry{}} }

func (z *zoneOrder) add(zone string) uint64 {
	z.tick++
	entry := z.seen[zone]
	if entry == nil {
		entry = &zoneEntry{since: z.tick}
		z.seen[zone] = entry
	}
	entry.nodes++
	return z.tick
}

func (z *zoneOrder) remove(zone string) {
	entry := z.seen[zone]
	if entry.nodes--; entry.nodes == 0 {
		delete(z.seen, zone)
	}
}

// zoneOf returns the key of a node's zone: its region and zone, by their labels of today or those of former times.
func zoneOf(labels map[string]string) string {
	region, zone := labels[v1.LabelTopologyRegion], labels[v1.LabelTopologyZone]
	if old, ok := labels[v1.LabelFailureDomainBetaZone]; ok && zone == "" {
		zone = old
	}
	if old, ok := labels[v1.LabelFailureDomainBetaRegion]; ok && region == "" {
		region = old
	}
	if region == "" && zone == "" {
		return ""
	}
	return region + "\x00" + zone
}

// ReferenceOrder returns the slots in the order in which kube-scheduler looks at nodes: zones as first seen, one node of
// each in turn.
func (l *Ledger) ReferenceOrder() []int32 {
	byZone := map[string][]int32{}
	l.Live.Each(func(slot int32) {
		zone := l.nodes[slot].zone
		byZone[zone] = append(byZone[zone], slot)
	})
	var zones [][]int32
	for _, zone := range byZone {
		slices.SortFunc(zone, func(a, b int32) int { return cmp.Compare(l.nodes[a].since, l.nodes[b].since) })
		zones = append(zones, zone)
	}
	first := func(zone []int32) uint64 { return l.zones.seen[l.nodes[zone[0]].zone].since }
	slices.SortFunc(zones, func(a, b []int32) int { return cmp.Compare(first(a), first(b)) })
	order := make([]int32, 0, l.count)
	for turn := 0; len(order) < l.count; turn++ {
		for _, zone := range zones {
			if turn < len(zone) {
				order = append(order, zone[turn])
			}
		}
	}
	return order
}
