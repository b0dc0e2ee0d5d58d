package manifest

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

func TestExpand(t *testing.T) {
	for _, test := range []struct {
		text  string
		index int
		want  string
	}{
		{"node", 3, "node"}, {"n-{index}", 3, "n-3"}, {"n-{index:4}", 42, "n-0042"}, {"rack-{index/40}", 40, "rack-1"},
		{"rack-{index/40}", 41, "rack-2"}, {"zone-{a,b,c}", 4, "zone-a"}, {"{a,b}{index}", 2, "b2"}, {"{,x}", 1, ""},
	} {
		if got, err := Expand(test.text, test.index); err != nil || got != test.want {
			t.Errorf("%s for %d: %q, %v; want %q", test.text, test.index, got, err, test.want)
		}
	}
	for text, want := range map[string]string{
		"{index": "without }", "{}": "none of", "{index:0}": "digits", "{index:x}": "digits", "{index/0}": "block", "{name}": "none of",
	} {
		if _, err := Expand(text, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("{index:4}-{a,b}-{index/3}", 7)
	f.Add("{{}}", 1)
	f.Fuzz(func(t *testing.T, text string, index int) {
		if index < 1 || index > MaxNodes {
			return
		}
		if got, err := Expand(text, index); err == nil && !strings.Contains(text, "{") && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

const gpuGroup = `
apiVersion: bayplan.dev/v1alpha1
kind: NodeGroup
metadata: {name: gpu}
spec:
  count: 3
  template:
    metadata:
      labels: {topology.kubernetes.io/zone: "zone-{a,b}", rack: "r{index/2}"}
      annotations: {note: "{kept}"}
    spec: {taints: [{key: gpu, effect: NoSchedule}]}
    status:
      capacity: {cpu: "{8,16}", memory: 64Gi, example.com/gpu: "4"}
      images: [{names: ["app:1"]}]
`

func TestNodes(t *testing.T) {
	objects, err := Read([]byte(gpuGroup))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := Nodes(&objects.Groups[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, n := range nodes {
		fmt.Fprintln(&got, n.Name, n.Labels["topology.kubernetes.io/zone"], n.Labels["rack"], n.Labels["kubernetes.io/hostname"], n.Status.Capacity.Cpu(), n.Annotations["note"], n.Labels[v1alpha1.LabelSimulated], n.Labels[v1alpha1.LabelNodeGroup])
	}
	want := "gpu-1 zone-a r1 gpu-1 8 {kept} true gpu\ngpu-2 zone-b r1 gpu-2 16 {kept} true gpu\ngpu-3 zone-a r2 gpu-3 8 {kept} true gpu\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}

func TestReadErrors(t *testing.T) {
	group := func(spec string) string {
		return "apiVersion: bayplan.dev/v1alpha1\nkind: NodeGroup\nmetadata: {name: g}\nspec: " + spec
	}
	for text, want := range map[string]string{
		group("{count: 1, template: {metadata: {name: 'UPPER'}}}"): `NodeGroup g: node 1: metadata.name: "UPPER"`,
		group("{count: 2, template: {metadata: {name: same}}}"):    "put {index} into the name",
		group("{count: -1}"):                                            "spec.count: -1",
		group("{count: 1, template: {kind: Pod}}"):                      "spec.template: kind: Pod must be Node",
		group("{count: 1, template: {status: {capcity: {}}}}"):          "capcity",
		group("{count: 1, template: {metadata: {labels: {a: '{b'}}}}"):  "metadata.labels.a",
		group("{count: 1, template: {metadata: {labels: {a: 'b c'}}}}"): "metadata.labels[a]",
		group("{counts: 1}"):                                            "counts",
		group("{count: 1}") + "\n---\n" + group("{count: 1}"):           `"g-1": there is a second one`,
		"kind: Pod\napiVersion: v1\nmetadata: {name: p}":                `document 1: Pod "p" of "v1": must be`,
		"a: 1": "no apiVersion and kind",
		"apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n# nothing\n---\n{":                                     "document 3",
		"apiVersion: bayplan.dev/v1alpha1\nkind: PodBehavior\nmetadata: {name: b}\nspec: {behavior: {startDelay: x}}": `PodBehavior "b": spec.behavior.startDelay`,
	} {
		if _, err := Read([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v, want %q", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(gpuGroup)
	f.Add("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := Read([]byte(text))
		if err != nil {
			return
		}
		for i := range objects.Groups {
			if objects.Groups[i].Spec.Count > 100 {
				continue
			}
			if _, err := Nodes(&objects.Groups[i], 1); err != nil {
				t.Errorf("%s\nread, but not made: %v", text, err)
			}
			if _, err := yaml.Marshal(objects.Groups[i]); err != nil {
				t.Error(err)
			}
		}
	})
}
