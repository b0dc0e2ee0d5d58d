package life

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ending is why a whole pod ends, and since when.
type ending struct {
	since time.Time
	grace time.Duration
	// phase, reason and message are the pod's, if the end gives it some.
	phase           corev1.PodPhase
	reason, message string
	condition       *corev1.PodCondition
	// refused pods were never let in: their status tells nothing of containers.
	refused bool
}

// Reason and message of a pod that ran longer than activeDeadlineSeconds.
const (
	reasonDeadline  = "DeadlineExceeded"
	messageDeadline = "Pod was active on the node longer than the specified deadline"
)

// Evict ends the pod because its node is short of something.
func (p *Pod) Evict(now time.Time, message string) {
	if p.ending != nil || p.ended {
		return
	}
	p.tell("Evicted", message)
	p.ending = &ending{
		since: now, phase: corev1.PodFailed, reason: "Evicted", message: message,
		condition: &corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonTerminationByKubelet, Message: message,
		},
	}
	p.stopAll()
}

// Refuse ends a pod that its node does not let in.
func (p *Pod) Refuse(now time.Time, reason, message string) {
	p.tell(reason, message)
	p.ending = &ending{since: now, phase: corev1.PodFailed, reason: reason, message: message, refused: true}
}

// noteEnding looks whether something outside of its containers ends the pod.
func (p *Pod) noteEnding(now time.Time) {
	if p.api.DeletionTimestamp != nil {
		p.noteDeletion(now)
	}
	if s := &p.api.Status; p.ending == nil && terminal(s.Phase) {
		// Somebody else has said so, and an end is never taken back.
		p.ending = &ending{since: now, grace: graceOf(p.api, nil), phase: s.Phase, reason: s.Reason, message: s.Message}
		p.stopAll()
	}
	seconds := p.api.Spec.ActiveDeadlineSeconds
	if seconds == nil || p.ending != nil {
		return
	}
	deadline := p.since.Add(time.Duration(*seconds) * time.Second)
	if p.due(deadline, now) {
		p.tell(reasonDeadline, messageDeadline)
		p.ending = &ending{since: deadline, grace: graceOf(p.api, nil), phase: corev1.PodFailed, reason: reasonDeadline, message: messageDeadline}
		p.stopAll()
	}
}

// noteDeletion begins the end of a deleted pod, or hastens it: deletionTimestamp is when its grace is over.
func (p *Pod) noteDeletion(now time.Time) {
	grace := time.Duration(0)
	if s := p.api.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	switch {
	case p.ending == nil:
		since := p.api.DeletionTimestamp.Add(-grace)
		// The time in the API has whole seconds only, and a node hears of a deletion after it.
		if now.Sub(since) < 2*time.Second {
			since = now
		}
		p.ending = &ending{since: since, grace: grace}
	case grace < p.ending.grace:
		p.ending.grace = grace
	default:
		return
	}
	p.stopAll()
}

// stopAll tells every container that runs to end, the sidecars excepted: their turn comes.
func (p *Pod) stopAll() {
	for _, c := range p.containers {
		if c.state == running && c.kind != kindSidecar {
			c.stopAt(p.ending.since, p.ending.grace)
		}
	}
}

// noteEnd begins the end of a pod whose containers have done their work.
func (p *Pod) noteEnd() bool {
	last := p.sandbox
	for _, c := range p.containers {
		switch {
		case c.kind == kindInit && c.state == exited && c.end.code != 0 && c.restart.IsZero():
			p.ending = &ending{since: c.end.at, grace: graceOf(p.api, nil)}
			p.stopAll()
			return true
		case c.kind != kindOrdinary:
		case c.state != exited || !c.restart.IsZero():
			return false
		default:
			last = later(last, c.end.at)
		}
	}
	p.ending = &ending{since: last, grace: graceOf(p.api, nil)}
	p.stopAll()
	return true
}

// end lets a pod that ends go on: first its ordinary containers, then the sidecars, the last one first.
func (p *Pod) end(now time.Time) bool {
	last, runs := p.ending.since, false
	for _, c := range p.containers {
		if c.kind == kindSidecar {
			continue
		}
		if c.state == running {
			if !p.due(c.end.at, now) {
				runs = true
				continue
			}
			c.exit(p)
		}
		c.restart = time.Time{}
		last = later(last, c.end.at)
	}
	if runs {
		return false
	}
	for _, c := range slices.Backward(p.containers) {
		if c.kind != kindSidecar {
			continue
		}
		if c.state == running {
			if !c.stopping {
				c.stopping = true
				c.stopAt(last, max(0, p.ending.since.Add(p.ending.grace).Sub(last)))
			}
			if !p.due(c.end.at, now) {
				return false
			}
			c.exit(p)
		}
		c.restart = time.Time{}
		last = later(last, c.end.at)
	}
	p.ended = true
	return false
}
