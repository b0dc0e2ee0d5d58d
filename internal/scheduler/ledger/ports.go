package ledger

import "github.com/bayplan/bayplan/internal/scheduler/shape"

// portTable counts the host ports taken. Few pods take any, so it is kept by port number, not by node.
type portTable map[int32]map[int32][]portUse

type portUse struct {
	port shape.Port
	pods int32
}

func (t portTable) add(port shape.Port, slot int32) {
	nodes := t[port.Number]
	if nodes == nil {
		nodes = map[int32][]portUse{}
		t[port.Number] = nodes
	}
	for i := range nodes[slot] {
		if nodes[slot][i].port == port {
			nodes[slot][i].pods++
			return
		}
	}
	nodes[slot] = append(nodes[slot], portUse{port: port, pods: 1})
}

func (t portTable) remove(port shape.Port, slot int32) {
	uses := t[port.Number][slot]
	for i := range uses {
		if uses[i].port != port {
			continue
		}
		if uses[i].pods--; uses[i].pods == 0 {
			uses = append(uses[:i], uses[i+1:]...)
		}
		break
	}
	if len(uses) > 0 {
		t[port.Number][slot] = uses
		return
	}
	delete(t[port.Number], slot)
	if len(t[port.Number]) == 0 {
		delete(t, port.Number)
	}
}

// PortTaken reports whether a pod on the node conflicts with the port.
func (l *Ledger) PortTaken(port shape.Port, slot int32) bool {
	for i := range l.ports[port.Number][slot] {
		if l.ports[port.Number][slot][i].port.Conflicts(port) {
			return true
		}
	}
	return false
}

// EachPortTaken calls do for every node on which a pod conflicts with the port, in no particular order.
func (l *Ledger) EachPortTaken(port shape.Port, do func(slot int32)) {
	for slot := range l.ports[port.Number] {
		if l.PortTaken(port, slot) {
			do(slot)
		}
	}
}
