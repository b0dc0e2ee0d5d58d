package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bayplan/bayplan/internal/fleet/provision"
)

const gpuNode = `
apiVersion: v1
kind: Node
metadata: {labels: {kind: gpu}, name: "gpu-{index}"}
`

func TestNodeGroupOfFlags(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "template.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const nodeGroup = "apiVersion: bayplan.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: g}\nspec: {count: 7}"
	for _, test := range []struct {
		options nodeOptions
		counted bool
		name    string
		count   int32
		errors  string
	}{
		{options: nodeOptions{count: 1}, name: "sim", count: 1},
		{options: nodeOptions{count: 5, group: "big"}, counted: true, name: "big", count: 5},
		{options: nodeOptions{count: 5, template: write(gpuNode)}, counted: true, name: "sim", count: 5},
		{options: nodeOptions{count: 5, group: "g3", template: write("apiVersion: v1\nkind: Node")}, counted: true, name: "g3", count: 5},
		{options: nodeOptions{count: 1, template: write("apiVersion: v1\nkind: Node")}, name: "sim", count: 1},
		{options: nodeOptions{count: 1, template: write(nodeGroup)}, name: "g", count: 7},
		{options: nodeOptions{count: 2, template: write(nodeGroup), group: "h"}, counted: true, name: "h", count: 2},
		{options: nodeOptions{count: 0}, errors: "--count 0"},
		{options: nodeOptions{count: 1, template: "/no/such/file"}, errors: "--template"},
		{options: nodeOptions{count: 1, template: write("kind: Pod")}, errors: "must be a NodeGroup"},
		{options: nodeOptions{count: 1, template: write(nodeGroup + "\n---" + gpuNode)}, errors: "exactly one object"},
	} {
		group, err := test.options.readGroup(test.counted)
		if test.errors != "" {
			if err == nil || !strings.Contains(err.Error(), test.errors) {
				t.Errorf("%+v: %v, want %q", test.options, err, test.errors)
			}
			continue
		}
		if err != nil || group.Name != test.name || group.Spec.Count != test.count {
			t.Errorf("%+v: %+v, %v", test.options, group, err)
		}
	}
}

func TestNodeChoice(t *testing.T) {
	for _, test := range []struct {
		choice provision.Choice
		ok     bool
	}{
		{provision.Choice{}, false}, {provision.Choice{Names: []string{"a"}}, true}, {provision.Choice{Group: "g"}, true},
		{provision.Choice{Group: "g", Count: 3}, true}, {provision.Choice{Group: "g", Count: -1}, false},
		{provision.Choice{Names: []string{"a"}, Group: "g"}, false}, {provision.Choice{Names: []string{"a"}, Count: 1}, false},
	} {
		if err := validateChoice(test.choice); (err == nil) != test.ok {
			t.Errorf("%+v: %v", test.choice, err)
		}
	}
}

func TestSimulatedFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--sim-nodes -1": "--sim-nodes", "--sim-nodes 100001": "--sim-nodes", "--sim-lease-period 30s": "--sim-lease-period", "--sim-rules /no/such/file": "--sim-rules",
	} {
		up := newUp()
		up.SilenceErrors, up.SilenceUsage = true, true
		up.SetArgs(append([]string{"--nodes", "0", "--data-dir", t.TempDir(), "--kubeconfig", filepath.Join(t.TempDir(), "k")}, strings.Fields(args)...))
		if err := up.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("up %s: %v", args, err)
		}
	}
}
