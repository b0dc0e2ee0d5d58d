package ledger

// undoLog is the one overlay for what-if: the pods added and removed since Mark, so that they can be taken back.
type undoLog struct {
	depth int
	ops   []undoOp
}

type undoOp struct {
	pod   *Pod
	slot  int32
	added bool
}

func (u *undoLog) record(pod *Pod, slot int32, added bool) {
	if u.depth > 0 {
		u.ops = append(u.ops, undoOp{pod: pod, slot: slot, added: added})
	}
}

// Mark is a point to which Rollback can return. Marks nest.
type Mark struct{ ops, depth int }

// Mark starts, or continues, a what-if. Between the first Mark and the Rollback to it only AddPod and RemovePod of pods
// on known nodes may change the ledger.
func (l *Ledger) Mark() Mark {
	mark := Mark{ops: len(l.undo.ops), depth: l.undo.depth}
	l.undo.depth++
	return mark
}

// Rollback undoes, last first, what has happened since the mark. Undone changes are journalled like others.
func (l *Ledger) Rollback(to Mark) {
	for len(l.undo.ops) > to.ops {
		last := len(l.undo.ops) - 1
		op := l.undo.ops[last]
		l.undo.ops = l.undo.ops[:last]
		if op.added {
			delete(l.pods, op.pod.UID)
			l.displace(op.pod)
			continue
		}
		l.pods[op.pod.UID] = op.pod
		l.place(op.pod, op.slot)
	}
	l.undo.depth = to.depth
}

// Commit keeps what has happened since the first Mark and ends the what-if.
func (l *Ledger) Commit() { l.undo = undoLog{ops: l.undo.ops[:0]} }
