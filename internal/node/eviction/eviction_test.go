package eviction

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func usage(name, request string, prio int32, used int64) Usage {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Priority: &prio, Containers: []v1.Container{{Name: "c"}}}}
	if request != "" {
		pod.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceMemory: resource.MustParse(request)}
	}
	return Usage{pod, map[string]int64{"c": used}}
}

func TestRank(t *testing.T) {
	const mi = 1 << 20
	ranked := Rank([]Usage{
		usage("within", "100Mi", 0, 90*mi),
		usage("burstable-over", "100Mi", 0, 150*mi),
		usage("best-effort-small", "", 0, 10*mi),
		usage("best-effort-big", "", 0, 200*mi),
		usage("important", "", 100, 500*mi),
		usage("critical", "", 2000000000, 900*mi),
	})
	var got []string
	for _, u := range ranked {
		got = append(got, u.Pod.Name)
	}
	if want := "best-effort-big burstable-over best-effort-small important within"; strings.Join(got, " ") != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

// A pod within its request never goes before one beyond it.
func TestRankKeepsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var pods []Usage
		for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
			u := usage(string(rune('a'+i)), "100", rapid.Int32Range(0, 3).Draw(t, "priority"), rapid.Int64Range(0, 200).Draw(t, "used"))
			pods = append(pods, u)
		}
		within := false
		for _, u := range Rank(pods) {
			if over := u.total() > u.request(); over && within {
				t.Fatal("a pod beyond its request comes after one within")
			} else if !over {
				within = true
			}
		}
	})
}

func TestMessages(t *testing.T) {
	got := Message(usage("p", "", 0, 300<<20), 100<<20, 50<<20)
	want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. Container c was using 307200Ki, request is 0, has larger consumption of memory. "
	if got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	limit := resource.MustParse("1Mi")
	pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "free", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}},
	}}}
	if got := OverLimit(pod, func(*v1.Volume) int64 { return 1 << 20 }); got != "" {
		t.Errorf("at the limit: %q", got)
	}
	if got, want := OverLimit(pod, func(*v1.Volume) int64 { return 1<<20 + 1 }), `Usage of EmptyDir volume "cache" exceeds the limit "1Mi". `; got != want {
		t.Errorf("beyond the limit: %q, want %q", got, want)
	}
}
