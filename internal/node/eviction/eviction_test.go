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
	return Usage{Pod: pod, Containers: map[string]int64{"c": used}}
}

func TestRank(t *testing.T) {
	const mi = 1 << 20
	ranked := Rank(v1.ResourceMemory, []Usage{
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
		for _, u := range Rank(v1.ResourceMemory, pods) {
			if over := u.total() > u.request(v1.ResourceMemory); over && within {
				t.Fatal("a pod beyond its request comes after one within")
			} else if !over {
				within = true
			}
		}
	})
}

func TestMessages(t *testing.T) {
	for want, got := range map[string]string{
		"The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. Container c was using 307200Ki, request is 0, has larger consumption of memory. ": Shortage{v1.ResourceMemory, 100 << 20, 50 << 20}.Message(usage("p", "", 0, 300<<20)),
		"The node was low on resource: memory. Threshold quantity: 100Mi, available: 51200Ki. ":                                                                                 Shortage{v1.ResourceMemory, 100 << 20, 50 << 20}.Message(usage("p", "300Mi", 0, 300<<20)),
		"The node was low on resource: pids. Threshold quantity: 500, available: 20. ":                                                                                          Shortage{PIDs, 500, 20}.Message(Usage{Pod: &v1.Pod{}, Shared: 3}),
	} {
		if got != want {
			t.Errorf("message %q, want %q", got, want)
		}
	}
}

func TestOverLimit(t *testing.T) {
	limits := func(text string) v1.ResourceRequirements {
		if text == "" {
			return v1.ResourceRequirements{}
		}
		return v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse(text)}}
	}
	volume, memory := resource.MustParse("1Mi"), resource.MustParse("1")
	pod := func(a, b string) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "a", Resources: limits(a)}, {Name: "b", Resources: limits(b)}},
			Volumes: []v1.Volume{
				{Name: "free", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
				{Name: "cache", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &volume}}},
				{Name: "fast", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: v1.StorageMediumMemory, SizeLimit: &memory}}},
			},
		}}
	}
	disk := func(a, b, free, cache int64) Disk {
		return Disk{map[string]int64{"a": a, "b": b}, map[string]int64{"free": free, "cache": cache, "fast": 100}}
	}
	const mi = 1 << 20
	for _, c := range []struct {
		pod  *v1.Pod
		disk Disk
		want string
	}{
		{pod("", ""), disk(9*mi, 9*mi, 9*mi, mi), ""},
		{pod("", ""), disk(0, 0, 0, mi+1), `Usage of EmptyDir volume "cache" exceeds the limit "1Mi". `},
		{pod("2Mi", "4Mi"), disk(2*mi, 3*mi, mi-200, 0), ""},
		{pod("2Mi", "4Mi"), disk(2*mi, 3*mi, mi, 1), "Pod ephemeral local storage usage exceeds the total limit of containers 6Mi. "},
		{pod("2Mi", "4Mi"), disk(2*mi+1, 0, 0, 0), `Container a exceeded its local ephemeral storage limit "2Mi". `},
	} {
		if got := OverLimit(c.pod, c.disk); got != c.want {
			t.Errorf("%+v: %q, want %q", c.disk, got, c.want)
		}
	}
	if !Bounded(pod("", "1Mi")) || !Bounded(pod("", "")) || Bounded(&v1.Pod{}) {
		t.Error("what is bounded")
	}
}
