package shape_test

import (
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"
)

func TestWhatPlacementDependsOnMakesAnotherShape(t *testing.T) {
	table := shape.NewTable()
	base := transcript.Pod(t, "base", "cpu=1", "labels=app=a")
	s := table.Compile(base)
	for name, change := range map[string]func(*v1.Pod){
		"namespace":  func(p *v1.Pod) { p.Namespace = "other" },
		"label":      func(p *v1.Pod) { p.Labels["x"] = "y" },
		"request":    func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("2") },
		"image":      func(p *v1.Pod) { p.Spec.Containers[0].Image = "other" },
		"port":       func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} },
		"selector":   func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} },
		"toleration": func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}} },
		"overhead":   func(p *v1.Pod) { p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: resource.MustParse("10m")} },
		"sidecar":    func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{{Name: "i", Image: "i"}} },
		"controller": func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r", Controller: &yes}}
		},
		"pod term":   func(p *v1.Pod) { p.Spec.Affinity = transcript.Pod(t, "x", "near=zone:app=a").Spec.Affinity },
		"anti term":  func(p *v1.Pod) { p.Spec.Affinity = transcript.Pod(t, "x", "apart=zone:app=a").Spec.Affinity },
		"soft term":  func(p *v1.Pod) { p.Spec.Affinity = transcript.Pod(t, "x", "like=zone:app=a:1").Spec.Affinity },
		"node term":  func(p *v1.Pod) { p.Spec.Affinity = transcript.Pod(t, "x", "require=disk=ssd").Spec.Affinity },
		"preference": func(p *v1.Pod) { p.Spec.Affinity = transcript.Pod(t, "x", "prefer=disk=ssd:1").Spec.Affinity },
		"spread": func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = transcript.Pod(t, "x", "spread=zone:1:hard:app=a").Spec.TopologySpreadConstraints
		},
		"soft spread": func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = transcript.Pod(t, "x", "spread=zone:1:soft:app=a").Spec.TopologySpreadConstraints
		},
	} {
		changed := base.DeepCopy()
		change(changed)
		if table.Compile(changed) == s {
			t.Errorf("a pod with another %s has the same shape", name)
		}
	}
	for name, change := range map[string]func(*v1.Pod){
		"name":     func(p *v1.Pod) { p.Name = "other" },
		"UID":      func(p *v1.Pod) { p.UID = "other" },
		"priority": func(p *v1.Pod) { *p.Spec.Priority = 7 },
		"node":     func(p *v1.Pod) { p.Spec.NodeName = "n1" },
		"status":   func(p *v1.Pod) { p.Status.Phase = v1.PodRunning },
	} {
		changed := base.DeepCopy()
		change(changed)
		if table.Compile(changed) != s {
			t.Errorf("a pod with another %s has another shape", name)
		}
	}
}

var yes = true

func TestTableForgetsWhatNobodyUses(t *testing.T) {
	table := shape.NewTable()
	kept := table.Compile(transcript.Pod(t, "kept", "labels=app=kept", "apart=zone:app=kept"))
	for i := range 5000 {
		pod := transcript.Pod(t, "p", "apart=zone:app=x")
		pod.Labels["serial"] = resource.NewQuantity(int64(i), resource.DecimalSI).String()
		table.Release(table.Compile(pod))
	}
	if n := table.Len(); n > 1100 {
		t.Errorf("%d shapes are kept though one is used", n)
	}
	if table.Compile(transcript.Pod(t, "again", "labels=app=kept", "apart=zone:app=kept")) != kept {
		t.Error("a shape in use was forgotten")
	}
}

// TestRequestsAreThoseOfTheLibrary compares the quick sum with the library that defines what a pod requests.
func TestRequestsAreThoseOfTheLibrary(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pod := &v1.Pod{}
		list := func(label string) v1.ResourceList {
			out := v1.ResourceList{}
			for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, "example.com/gpu"} {
				if rapid.Bool().Draw(r, label+string(name)) {
					out[name] = *resource.NewMilliQuantity(int64(rapid.IntRange(0, 5).Draw(r, label+" amount"))*500, resource.DecimalSI)
				}
			}
			return out
		}
		container := func(label string) v1.Container {
			return v1.Container{Name: label, Resources: v1.ResourceRequirements{Requests: list(label)}}
		}
		for range rapid.IntRange(1, 3).Draw(r, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers, container("c"))
		}
		for range rapid.IntRange(0, 2).Draw(r, "init") {
			c := container("i")
			if rapid.Bool().Draw(r, "sidecar") {
				always := v1.ContainerRestartPolicyAlways
				c.RestartPolicy = &always
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		}
		if rapid.Bool().Draw(r, "overhead") {
			pod.Spec.Overhead = list("overhead")
		}
		if rapid.Bool().Draw(r, "pod-level") {
			pod.Spec.Resources = &v1.ResourceRequirements{Requests: list("pod")}
		}
		if rapid.Bool().Draw(r, "status") {
			pod.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", AllocatedResources: list("allocated")}}
		}
		table := shape.NewTable()
		s := table.Compile(pod)
		want := helpers.PodRequests(pod, helpers.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true})
		for name, quantity := range want {
			index, _ := table.Resources.Lookup(name)
			if got := s.Request(index); got != shape.Amount(name, &quantity) {
				r.Fatalf("requests %d of %s, want %s", got, name, quantity.String())
			}
		}
		if len(s.Requests) > len(want) {
			r.Fatalf("requests %v, want %v", s.Requests, want)
		}
	})
}

func TestScoringRequestsHaveDefaults(t *testing.T) {
	for _, test := range []struct {
		words []string
		want  [2]int64
	}{
		{nil, [2]int64{100, 200 << 20}},
		{[]string{"cpu=1"}, [2]int64{1000, 200 << 20}},
		{[]string{"cpu=0", "memory=0"}, [2]int64{0, 0}},
	} {
		if got := shape.NewTable().Compile(transcript.Pod(t, "p", test.words...)).Scoring; got != test.want {
			t.Errorf("%v: %v, want %v", test.words, got, test.want)
		}
	}
}

func TestPortsConflict(t *testing.T) {
	port := func(ip string, number int32, protocol v1.Protocol) shape.Port {
		return shape.Port{HostIP: ip, Number: number, Protocol: protocol}
	}
	for _, test := range []struct {
		a, b shape.Port
		want bool
	}{
		{port("0.0.0.0", 80, "TCP"), port("10.0.0.1", 80, "TCP"), true},
		{port("10.0.0.1", 80, "TCP"), port("10.0.0.1", 80, "TCP"), true},
		{port("10.0.0.1", 80, "TCP"), port("10.0.0.2", 80, "TCP"), false},
		{port("0.0.0.0", 80, "TCP"), port("0.0.0.0", 80, "UDP"), false},
		{port("0.0.0.0", 80, "TCP"), port("0.0.0.0", 81, "TCP"), false},
	} {
		if test.a.Conflicts(test.b) != test.want || test.b.Conflicts(test.a) != test.want {
			t.Errorf("%v and %v: conflict is not %v", test.a, test.b, test.want)
		}
	}
}

func TestImageName(t *testing.T) {
	for name, want := range map[string]string{
		"hello": "hello:latest", "hello:1": "hello:1", "host:5000/hello": "host:5000/hello:latest", "a/b@sha256:12": "a/b@sha256:12",
	} {
		if got := shape.ImageName(name); got != want {
			t.Errorf("%s is normalised to %s, want %s", name, got, want)
		}
	}
}

func TestPodLevelRequests(t *testing.T) {
	pod := transcript.Pod(t, "a", "cpu=1")
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second", Image: "second"})
	pod.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}}
	s := shape.NewTable().Compile(pod)
	const defaultMemory = 200 << 20
	if want := [2]int64{1100, 2 * defaultMemory}; s.Scoring != want {
		t.Errorf("scores count with %v, want the containers' %v", s.Scoring, want)
	}
	if want := [2]int64{3000, 2 * defaultMemory}; s.Counted != want {
		t.Errorf("the node's sum grows by %v, want %v: the pod's own CPU, and memory that nobody names", s.Counted, want)
	}
	if len(s.Requests) != 1 || s.Requests[0].Amount != 3000 {
		t.Errorf("requests are %v, want the pod's own", s.Requests)
	}
}

func TestImagesOfVolumesCount(t *testing.T) {
	pod := transcript.Pod(t, "a", "image=app")
	pod.Spec.Volumes = []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "model"}}}, {Name: "none"},
	}
	if got := shape.NewTable().Compile(pod).Images; len(got) != 2 || got[1] != "model:latest" {
		t.Errorf("images are %v, want the container's and the volume's", got)
	}
}
