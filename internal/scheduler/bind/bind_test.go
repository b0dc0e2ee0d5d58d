package bind

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPoolIsBoundedAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(3)
		ctx, cancel := context.WithCancel(context.Background())
		var running, most, done atomic.Int32
		for range 20 {
			p.Do(func(context.Context) {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second) // The bubble's clock: work that takes a while.
				running.Add(-1)
				done.Add(1)
			})
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			p.Run(ctx)
		}()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if most.Load() != 3 || done.Load() != 20 {
			t.Errorf("%d pieces of work at once, %d done; want 3 and 20", most.Load(), done.Load())
		}
		cancel()
		<-ended
	})
}

func TestConditionIsWrittenOnlyIfItChanges(t *testing.T) {
	was := metav1.NewTime(time.Unix(1e9, 0))
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: v1.PodStatus{
		NominatedNodeName: "n1",
		Conditions: []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: "Unschedulable", Message: "full", LastTransitionTime: was,
		}},
	}}
	for _, test := range []struct {
		name    string
		report  Report
		changes bool
		want    string
	}{
		{"the same again", Report{Reason: "Unschedulable", Message: "full"}, false, ""},
		{"another message", Report{Reason: "Unschedulable", Message: "fuller"}, true, `"message":"fuller"`},
		{"the same nomination", Report{Reason: "Unschedulable", Message: "full", Nominated: "n1"}, false, ""},
		{"another nomination", Report{Reason: "Unschedulable", Message: "full", Nominated: "n2"}, true, `"nominatedNodeName":"n2"`},
		{"no nomination any more", Report{Reason: "Unschedulable", Message: "full", Clear: true}, true, `"nominatedNodeName":""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			patch, changes := conditionPatch(pod, test.report, metav1.NewTime(time.Unix(2e9, 0)))
			text, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if changes != test.changes || !strings.Contains(string(text), test.want) || !strings.Contains(string(text), `"uid":"u"`) {
				t.Errorf("changes %v, patch %s; want %v with %s", changes, text, test.changes, test.want)
			}
			if len(patch.Status.Conditions) > 0 && !patch.Status.Conditions[0].LastTransitionTime.Equal(&was) {
				t.Errorf("the time of the transition moves though the status does not")
			}
		})
	}
}
