package cycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

// restriction is what filters know before they look at nodes.
type restriction struct {
	// named tells that only the nodes in slots are looked at; all others have the status outside. If the pod is refused
	// that is every node.
	named, refused bool
	slots          []int32
	outside        plugin.Status
}

// restriction asks, in the order of the profile, which nodes the pod leaves itself.
func (v *view) restriction() restriction {
	var names, by []string
	for i := range v.filters {
		if refuser, is := v.filters[i].Filter.(plugin.Refuser); is {
			if status, refused := refuser.Refuse(); refused {
				return restriction{named: true, refused: true, outside: status}
			}
		}
		restrictor, is := v.filters[i].Filter.(plugin.Restrictor)
		if !is {
			continue
		}
		more, named := restrictor.Restrict()
		if !named {
			continue
		}
		if by == nil {
			names = more
		} else {
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !slices.Contains(more, name) })
		}
		by = append(by, v.filters[i].name)
		if len(names) == 0 {
			return disjoint(by)
		}
	}
	if by == nil {
		return restriction{}
	}
	return restriction{named: true, slots: v.existing(names), outside: unsatisfied(by, "")}
}

// disjoint is what becomes of a pod whose plugins name different nodes.
func disjoint(by []string) restriction {
	return restriction{named: true, refused: true, outside: unsatisfied(by, " simultaneously")}
}

// unsatisfied is the status of nodes that a pod that names nodes does not name. Its plugin is all of them, by commas.
func unsatisfied(by []string, how string) plugin.Status {
	slices.Sort(by)
	reason := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v%s", by, how)
	return plugin.Reject(strings.Join(by, ","), plugin.Unresolvable, reason)
}

func (v *view) existing(names []string) (slots []int32) {
	for _, name := range names {
		if slot, known := v.ledger.Slot(name); known {
			slots = append(slots, slot)
		}
	}
	return slots
}

// outside tells whether a node is none of those that the pod names, and the status that it then has.
func (v *view) outside(slot int32) (plugin.Status, bool) {
	r := v.restriction()
	if !r.named || slices.Contains(r.slots, slot) {
		return plugin.Status{}, false
	}
	return r.outside, true
}
