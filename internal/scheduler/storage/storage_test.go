package storage

import (
	"strings"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/shape"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var wait = storagev1.VolumeBindingWaitForFirstConsumer

func claim(name, class, size string) *v1.PersistentVolumeClaim {
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "10",
	}}
	c.Spec.StorageClassName = &class
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	return c
}

func volume(name, class, size string) *v1.PersistentVolume {
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "10"}}
	v.Spec.StorageClassName, v.Status.Phase = class, v1.VolumeAvailable
	v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	return v
}

func local(t *testing.T) *State {
	t.Helper()
	s := New()
	s.SetClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"}, VolumeBindingMode: &wait, Provisioner: notSupported})
	return s
}

// find looks for the volume of the claim data on node n1.
func find(s *State) (string, Obstacles) {
	plan, obstacles := s.Find("default", []shape.Claim{{Name: "data"}}, "n1", nil)
	if len(plan.Bind) == 0 {
		return "", obstacles
	}
	return plan.Bind[0].Volume.Name, obstacles
}

func TestWhichVolumeFits(t *testing.T) {
	block := v1.PersistentVolumeBlock
	for name, test := range map[string]struct {
		change func(*v1.PersistentVolume, *v1.PersistentVolumeClaim)
		want   string
	}{
		"as it is":      {func(*v1.PersistentVolume, *v1.PersistentVolumeClaim) {}, "small"},
		"another class": {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) { v.Spec.StorageClassName = "other" }, "large"},
		"beta class": {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) {
			v.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "x"}
		}, "large"},
		"too small": {func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("3Gi")
		}, "large"},
		"of another claim": {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "x"}
		}, "large"},
		"of an older claim": {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) {
			v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "data", UID: "old"}
		}, "large"},
		"block":         {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) { v.Spec.VolumeMode = &block }, "large"},
		"released":      {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) { v.Status.Phase = v1.VolumeReleased }, "large"},
		"being deleted": {func(v *v1.PersistentVolume, _ *v1.PersistentVolumeClaim) { v.DeletionTimestamp = &metav1.Time{} }, "large"},
		"not selected": {func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, ""},
		"access mode": {func(_ *v1.PersistentVolume, c *v1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteMany}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := local(t)
			v, c := volume("small", "local", "2Gi"), claim("data", "local", "1Gi")
			test.change(v, c)
			s.SetVolume(volume("large", "local", "5Gi"))
			s.SetVolume(v)
			s.SetClaim(c)
			if got, _ := find(s); got != test.want {
				t.Errorf("volume %q is found, want %q", got, test.want)
			}
		})
	}
}

func TestVolumeMadeForTheClaimGoesBeforeTheSmallest(t *testing.T) {
	s := local(t)
	s.SetClaim(claim("data", "local", "1Gi"))
	s.SetVolume(volume("small", "local", "1Gi"))
	meant := volume("meant", "local", "9Gi")
	meant.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: "data"}
	s.SetVolume(meant)
	if got, _ := find(s); got != "meant" {
		t.Errorf("volume %q is found", got)
	}
	meant = meant.DeepCopy()
	meant.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "elsewhere", Operator: v1.NodeSelectorOpExists}},
	}}}}
	s.SetVolume(meant)
	if got, obstacles := find(s); got != "" || obstacles != BindConflict {
		t.Errorf("volume %q is found (obstacles %b) though the one made for the claim is elsewhere", got, obstacles)
	}
}

func TestAssumedVolumeIsTakenUntilForgottenOrTold(t *testing.T) {
	s := local(t)
	s.SetClaim(claim("data", "local", "1Gi"))
	s.SetClaim(claim("rival", "local", "1Gi"))
	s.SetVolume(volume("only", "local", "1Gi"))
	plan, _ := s.Find("default", []shape.Claim{{Name: "rival"}}, "n1", nil)
	before := s.Revision()
	s.Assume(plan)
	if got, _ := find(s); got != "" || s.Revision() == before {
		t.Errorf("volume %q is found though it is assumed to be another claim's", got)
	}
	if ref := plan.Bind[0].Volume.Spec.ClaimRef; ref.UID != "rival" || plan.Bind[0].Volume.Annotations[annBoundByController] != "yes" {
		t.Errorf("what has to be written names %v", ref)
	}
	s.Forget(plan)
	if got, _ := find(s); got != "only" {
		t.Error("the volume is not free again")
	}
	s.Assume(plan)
	s.SetVolume(volume("only", "local", "1Gi"))
	if got, _ := find(s); got != "only" {
		t.Error("what the watch told does not end what was assumed")
	}
}

func TestSettled(t *testing.T) {
	s := local(t)
	s.SetClaim(claim("data", "local", "1Gi"))
	s.SetVolume(volume("v", "local", "1Gi"))
	plan, _ := s.Find("default", []shape.Claim{{Name: "data"}}, "n1", nil)
	s.Assume(plan)
	plan.Bind[0].Volume.ResourceVersion = "20"
	check := func(step string, done bool, problem string) {
		t.Helper()
		got, err := s.Settled(plan, nil)
		if got != done || (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: settled %v, error %v", step, got, err)
		}
	}
	check("before the watch has told", false, "")
	told := plan.Bind[0].Volume.DeepCopy()
	s.SetVolume(told)
	check("before the claim is bound", false, "")
	bound := claim("data", "local", "1Gi")
	bound.Spec.VolumeName, bound.Annotations = "v", map[string]string{annBindCompleted: "yes"}
	s.SetClaim(bound)
	check("when it is", true, "")
	lost := told.DeepCopy()
	lost.Spec.ClaimRef, lost.ResourceVersion = nil, "30"
	s.SetVolume(lost)
	check("when somebody takes the claim out", false, "lost its claimRef")
	s.DeleteVolume("v")
	check("when the volume is deleted", false, "is gone")
}

func TestCapacity(t *testing.T) {
	yes := true
	s := New()
	s.SetClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: &wait, Provisioner: "d"})
	s.SetDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}})
	s.SetClaim(claim("data", "fast", "5Gi"))
	if _, obstacles := find(s); obstacles != NoSpace {
		t.Errorf("obstacles are %b although the driver tells of no capacity", obstacles)
	}
	size, largest := resource.MustParse("50Gi"), resource.MustParse("2Gi")
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Name: "c"}, StorageClassName: "fast", Capacity: &size, NodeTopology: &metav1.LabelSelector{}}
	s.SetCapacity(c)
	if plan, obstacles := s.Find("default", []shape.Claim{{Name: "data"}}, "n1", nil); obstacles != 0 || plan.Provision[0].Total != 50<<30 {
		t.Errorf("obstacles are %b, plan %v", obstacles, plan)
	}
	c.MaximumVolumeSize = &largest
	s.SetCapacity(c)
	if _, obstacles := find(s); obstacles != NoSpace {
		t.Errorf("obstacles are %b although no volume may be so large", obstacles)
	}
	s.DeleteCapacity("", "c")
	s.DeleteDriver("d")
	if _, obstacles := find(s); obstacles != 0 {
		t.Errorf("obstacles are %b although the driver does not tell its capacity", obstacles)
	}
}

// TestNoVolumeIsGivenTwice: whatever is assumed and forgotten, no two plans that count name one volume.
func TestNoVolumeIsGivenTwice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := local(t)
		for i := range rapid.IntRange(1, 5).Draw(r, "volumes") {
			s.SetVolume(volume(string(rune('a'+i)), "local", rapid.SampledFrom([]string{"1Gi", "2Gi", "3Gi"}).Draw(r, "size")))
		}
		plans := map[string]*Plan{}
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			name := rapid.SampledFrom([]string{"x", "y", "z", "data"}).Draw(r, "claim")
			if plan := plans[name]; plan != nil {
				s.Forget(plan)
				delete(plans, name)
				continue
			}
			s.SetClaim(claim(name, "local", rapid.SampledFrom([]string{"1Gi", "2Gi"}).Draw(r, "request")))
			plan, obstacles := s.Find("default", []shape.Claim{{Name: name}}, "n1", nil)
			if obstacles == 0 {
				s.Assume(plan)
				plans[name] = plan
			}
			owner := map[string]string{}
			for name, plan := range plans {
				if other := owner[plan.Bind[0].Volume.Name]; other != "" {
					r.Fatalf("volume %s is given to %s and %s", plan.Bind[0].Volume.Name, other, name)
				}
				owner[plan.Bind[0].Volume.Name] = name
			}
		}
	})
}
