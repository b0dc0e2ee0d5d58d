package ledger

import (
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is a pod that takes up room on a node.
type Pod struct {
	UID      types.UID
	Name     string
	Shape    *shape.Shape
	Priority int32
	// Slot is its node's, None while the ledger does not know the node.
	Slot int32
	// Started is when the pod started, in nanoseconds since 1970. Of two pods of equal priority the later one goes first.
	Started int64
	// Terminating tells that the pod is being deleted: it holds its resources but does not count for topology spread.
	Terminating bool
	// Assumed tells that the scheduler has decided and the API server has not confirmed yet.
	Assumed bool
	// Preempted tells that the scheduler has asked for the pod's deletion to make room for another.
	Preempted bool

	inNode, inGroup int32
}

// Pod returns the pod with the given UID, nil if it takes up no room.
func (l *Ledger) Pod(uid types.UID) *Pod { return l.pods[uid] }

// NodeOf returns the name of the node that a pod is on.
func (l *Ledger) NodeOf(pod *Pod) string {
	if pod.Slot == None {
		return l.absentNode[pod]
	}
	return l.nodes[pod.Slot].name
}

// AddPod counts a pod on a node. The pod must not be counted already; its shape's use is the caller's.
func (l *Ledger) AddPod(pod *Pod, nodeName string) {
	l.pods[pod.UID] = pod
	slot, known := l.bySlot[nodeName]
	if !known {
		pod.Slot = None
		l.setAbsent(pod, nodeName)
		return
	}
	l.place(pod, slot)
	l.undo.record(pod, slot, true)
}

// RemovePod takes a pod out.
func (l *Ledger) RemovePod(pod *Pod) {
	delete(l.pods, pod.UID)
	if pod.Slot == None {
		l.clearAbsent(pod)
		return
	}
	slot := pod.Slot
	l.displace(pod)
	l.undo.record(pod, slot, false)
}

// setAbsent keeps a pod until its node comes.
func (l *Ledger) setAbsent(pod *Pod, nodeName string) {
	l.absent[nodeName] = append(l.absent[nodeName], pod)
	l.absentNode[pod] = nodeName
}

func (l *Ledger) clearAbsent(pod *Pod) {
	name := l.absentNode[pod]
	delete(l.absentNode, pod)
	list := slices.DeleteFunc(l.absent[name], func(p *Pod) bool { return p == pod })
	l.absent[name] = list
	if len(list) == 0 {
		delete(l.absent, name)
	}
}

// SetPriority notes that a pod's priority is another one now.
func (l *Ledger) SetPriority(pod *Pod, priority int32) {
	if pod.Priority == priority {
		return
	}
	if pod.Slot == None {
		pod.Priority = priority
		return
	}
	slot := pod.Slot
	l.displace(pod)
	pod.Priority = priority
	l.place(pod, slot)
}

// HasLower reports whether any pod on a known node has a lower priority.
func (l *Ledger) HasLower(priority int32) bool {
	for other := range l.priorities {
		if other < priority {
			return true
		}
	}
	return false
}

// SetTerminating notes that a pod is being deleted.
func (l *Ledger) SetTerminating(pod *Pod) {
	if pod.Terminating {
		return
	}
	pod.Terminating = true
	if pod.Slot != None {
		l.groups.mark(pod)
		l.journal.append(Change{Slot: pod.Slot, Kind: PodTerminating, Shape: pod.Shape})
	}
}

// place puts the pod on a node: columns, groups, journal.
func (l *Ledger) place(pod *Pod, slot int32) {
	node := &l.nodes[slot]
	pod.Slot, pod.inNode = slot, int32(len(node.pods))
	node.pods = append(node.pods, pod)
	l.count1(pod.Shape, slot, 1)
	for _, port := range pod.Shape.Ports {
		l.ports.add(port, slot)
	}
	l.groups.add(pod)
	l.priorities[pod.Priority]++
	l.journal.append(Change{Slot: slot, Kind: PodAdded, Shape: pod.Shape, Terminating: pod.Terminating})
}

// displace takes the pod off its node.
func (l *Ledger) displace(pod *Pod) {
	slot := pod.Slot
	node := &l.nodes[slot]
	last := len(node.pods) - 1
	moved := node.pods[last]
	node.pods[pod.inNode], moved.inNode = moved, pod.inNode
	node.pods[last] = nil
	node.pods = node.pods[:last]
	l.count1(pod.Shape, slot, -1)
	for _, port := range pod.Shape.Ports {
		l.ports.remove(port, slot)
	}
	l.groups.remove(pod)
	if l.priorities[pod.Priority]--; l.priorities[pod.Priority] == 0 {
		delete(l.priorities, pod.Priority)
	}
	l.journal.append(Change{Slot: slot, Kind: PodRemoved, Shape: pod.Shape, Terminating: pod.Terminating})
	pod.Slot = None
}

// count1 adds (sign 1) or takes away (sign -1) what one pod of a shape requests.
func (l *Ledger) count1(s *shape.Shape, slot int32, sign int64) {
	l.PodCount[slot] += int32(sign)
	for _, r := range s.Requests {
		l.growResources(r.Resource)
		l.requested[r.Resource][slot] += sign * r.Amount
	}
	l.Scoring[shape.CPU][slot] += sign * s.Counted[shape.CPU]
	l.Scoring[shape.Memory][slot] += sign * s.Counted[shape.Memory]
}
