package cycle

import "github.com/bayplan/bayplan/internal/scheduler/plugin"

// dead is the verdict on a slot without a node.
const dead uint16 = 1

// verdictTable numbers the different rejections of a view and counts them. 0 is feasible.
type verdictTable struct {
	entries []rejection
	count   []int32
	last    uint16
}

// rejection is what one filter said.
type rejection struct {
	filter int
	code   plugin.Code
}

func (t *verdictTable) reset() {
	none := rejection{filter: -1}
	t.entries = append(t.entries[:0], none, none)
	t.count = append(t.count[:0], 0, 0)
	t.last = 0
}

// number returns the number of a rejection. Neighbours are mostly rejected alike, so the last one is tried first.
func (t *verdictTable) number(filter int, code plugin.Code) uint16 {
	wanted := rejection{filter: filter, code: code}
	if t.entries[t.last] == wanted {
		return t.last
	}
	for i := int(dead) + 1; i < len(t.entries); i++ {
		if t.entries[i] == wanted {
			t.last = uint16(i)
			return t.last
		}
	}
	t.entries = append(t.entries, wanted)
	t.count = append(t.count, 0)
	t.last = uint16(len(t.entries) - 1)
	return t.last
}
