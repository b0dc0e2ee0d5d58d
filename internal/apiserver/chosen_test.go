package apiserver

import (
	"strings"
	"testing"
)

func TestChosen(t *testing.T) {
	all := []admissionPlugin{{name: "B"}, {name: "ExtendedResourceToleration"}, {name: "A"}}
	for _, test := range []struct {
		choice Admission
		want   string
	}{
		{Admission{}, "B A"},
		{Admission{Enable: []string{"ExtendedResourceToleration", "A"}}, "B ExtendedResourceToleration A"},
		{Admission{Disable: []string{"B", "ExtendedResourceToleration"}}, "A"},
		{Admission{Enable: []string{"Z"}, Disable: []string{"Y"}}, "there is no admission plugin Y, Z; there are A, B, ExtendedResourceToleration"},
		{Admission{Enable: []string{"A"}, Disable: []string{"A"}}, "admission plugin A is both enabled and disabled"},
	} {
		plugins, err := chosen(append([]admissionPlugin{}, all...), test.choice)
		var names []string
		for _, plugin := range plugins {
			names = append(names, plugin.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q, want %q", test.choice, got, test.want)
		}
	}
}
