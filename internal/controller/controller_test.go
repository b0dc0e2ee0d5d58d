package controller

import (
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestSlowStart(t *testing.T) {
	for _, c := range []struct{ count, failFrom, done, calls int }{
		{0, 100, 0, 0},
		{1, 100, 1, 1},
		{10, 100, 10, 10}, // 1, 2, 4 and the remaining 3
		{10, 1, 0, 1},     // the first one fails: nobody else is asked
		{100, 4, 3, 7},    // the third batch of 4 fails
	} {
		var calls atomic.Int64
		done, err := SlowStart(c.count, func() error {
			if calls.Add(1) >= int64(c.failFrom) {
				return errors.New("no")
			}
			return nil
		})
		if done != c.done || int(calls.Load()) != c.calls || (err != nil) != (c.done < c.count) {
			t.Errorf("%d calls that fail from the %dth on: %d succeeded in %d calls, error %v; want %d in %d", c.count, c.failFrom, done, calls.Load(), err, c.done, c.calls)
		}
	}
}

// Same input, same name; a collision count or another template changes it.
func TestTemplateHash(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "tier": "front"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i:1"}}},
	}
	first := TemplateHash(template, nil)
	if again := TemplateHash(template.DeepCopy(), nil); again != first {
		t.Errorf("the same template has the hashes %s and %s", first, again)
	}
	if other := TemplateHash(template, ptr.To(int32(1))); other == first {
		t.Errorf("the collision count does not change the hash %s", first)
	}
	template.Spec.Containers[0].Image = "i:2"
	if other := TemplateHash(template, nil); other == first {
		t.Errorf("another image does not change the hash %s", first)
	}
}

func TestTolerates(t *testing.T) {
	taint := &corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		toleration corev1.Toleration
		want       bool
	}{
		{corev1.Toleration{Operator: corev1.TolerationOpExists}, true}, // every taint
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists}, true},
		{corev1.Toleration{Key: "k", Value: "v"}, true},
		{corev1.Toleration{Key: "k", Value: "w"}, false},
		{corev1.Toleration{Key: "l", Operator: corev1.TolerationOpExists}, false},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, false},
		{corev1.Toleration{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}, true},
		{corev1.Toleration{}, false},
	} {
		if got := Tolerates(&c.toleration, taint); got != c.want {
			t.Errorf("%+v tolerates %v: %v, want %v", c.toleration, taint, got, c.want)
		}
	}
}
