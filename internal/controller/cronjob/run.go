package cronjob

import (
	"context"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// manyMissed is the number of missed times from which on something is probably wrong.
const manyMissed = 100

// run starts the Job of the latest time that is due, if its deadline and the concurrency policy allow it.
func (t *turn) run(ctx context.Context) error {
	location := t.now.Location()
	if zone := t.cj.Spec.TimeZone; zone != nil {
		var err error
		if location, err = time.LoadLocation(*zone); err != nil {
			t.warn("UnknownTimeZone", "invalid timeZone: %q: %s", *zone, err)
			return nil // nothing changes until the object does
		}
	}
	plan, err := parse(t.cj.Spec.Schedule, location)
	if err != nil {
		t.warn("UnparseableSchedule", "unparseable schedule: %q : %s", t.cj.Spec.Schedule, err)
		return nil
	}
	if next := plan.next(t.now); !next.IsZero() {
		t.c.AddAfter(t.key, next.Sub(t.now))
	}
	at := t.latest(plan)
	if at.IsZero() || t.tooLate(at) {
		return nil
	}
	if last := t.cj.Status.LastScheduleTime; last != nil && !at.After(last.Time) {
		return nil
	}
	switch t.cj.Spec.ConcurrencyPolicy {
	case batchv1.ForbidConcurrent:
		if len(t.cj.Status.Active) > 0 {
			t.inform("JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
			return nil
		}
	case batchv1.ReplaceConcurrent:
		for _, ref := range slices.Clone(t.cj.Status.Active) {
			if err := t.deleteJob(ctx, ref.Name, ref.UID); err != nil {
				return err
			}
			t.deactivate(ref.UID)
		}
	}
	return t.startJob(ctx, at, location)
}

// tooLate tells whether the time to start the Job has passed.
func (t *turn) tooLate(at time.Time) bool {
	deadline := t.cj.Spec.StartingDeadlineSeconds
	if deadline == nil || !at.Add(time.Duration(*deadline)*time.Second).Before(t.now) {
		return false
	}
	t.warn("MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
	return true
}

// latest is the latest time that is due since the last one that was started, or the zero time.
func (t *turn) latest(plan schedule) time.Time {
	since := t.cj.CreationTimestamp.Time
	if last := t.cj.Status.LastScheduleTime; last != nil {
		since = last.Time
	}
	if deadline := t.cj.Spec.StartingDeadlineSeconds; deadline != nil {
		if earliest := t.now.Add(-time.Duration(*deadline) * time.Second); earliest.After(since) {
			since = earliest
		}
	}
	latest, missed := time.Time{}, 0
	for at := plan.next(since); !at.IsZero() && !at.After(t.now); at = plan.next(at) {
		latest = at
		if missed++; missed%manyMissed == 0 {
			// Only the last one matters: leave out half of what is left.
			if half := at.Add(t.now.Sub(at) / 2); !plan.next(half).After(t.now) {
				at = half
			}
		}
	}
	if missed > manyMissed {
		t.warn("TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	return latest
}
