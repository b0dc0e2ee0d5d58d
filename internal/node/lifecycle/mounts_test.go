package lifecycle

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestVolumeMountsInStatus(t *testing.T) {
	enabled, disabled, possible := v1.RecursiveReadOnlyEnabled, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible
	c := &v1.Container{VolumeMounts: []v1.VolumeMount{
		{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b", ReadOnly: true}, {Name: "c", MountPath: "/c", ReadOnly: true, RecursiveReadOnly: &disabled},
		{Name: "d", MountPath: "/d", ReadOnly: true, RecursiveReadOnly: &possible}, {Name: "e", MountPath: "/e", ReadOnly: true, RecursiveReadOnly: &enabled},
	}}
	var got []string
	for _, m := range volumeMounts(c) {
		mode := "-"
		if m.RecursiveReadOnly != nil {
			mode = string(*m.RecursiveReadOnly)
		}
		got = append(got, fmt.Sprint(m.Name, " ", m.MountPath, " ", m.ReadOnly, " ", mode))
	}
	want := []string{"a /a false -", "b /b true Disabled", "c /c true Disabled", "d /d true Enabled", "e /e true Enabled"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
