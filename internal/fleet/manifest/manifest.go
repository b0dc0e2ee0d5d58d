// Package manifest reads what users write about simulated nodes: files of NodeGroup, PodBehavior and Node objects, and the patterns in the templates of nodes.
//
//	file ─► Read ─► Objects: groups, rules ─► Nodes(group) ─► Node objects, one after the other
//
// An error names the document, the object and the field.
package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/behavior"
)

// Objects are those of a file.
type Objects struct {
	Groups []v1alpha1.NodeGroup
	Rules  []v1alpha1.PodBehavior
}

// Read reads YAML or JSON documents. A Node stands for a group of one node without a name of its own.
func Read(data []byte) (Objects, error) {
	out, err := parse(data)
	if err != nil {
		return out, err
	}
	return out, out.check()
}

// ReadGroup reads one NodeGroup or Node. With a name the group is called so; usual is what it is called when nothing names it.
func ReadGroup(data []byte, name, usual string) (*v1alpha1.NodeGroup, error) {
	all, err := parse(data)
	if err != nil {
		return nil, err
	}
	if len(all.Groups) != 1 || len(all.Rules) > 0 {
		return nil, errors.New("must have exactly one object, a Node or a NodeGroup")
	}
	group := &all.Groups[0]
	if name != "" {
		group.Name = name
	} else if group.Name == "" {
		group.Name = usual
	}
	return group, all.check()
}

func parse(data []byte) (Objects, error) {
	var out Objects
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = out.add(document)
		}
		if err != nil {
			return out, fmt.Errorf("document %d: %w", number, err)
		}
	}
	return out, nil
}

func (o *Objects) add(document []byte) error {
	var meta metav1.PartialObjectMetadata
	if err := yaml.Unmarshal(document, &meta); err != nil {
		return err
	}
	name := fmt.Sprintf("%s %q", meta.Kind, meta.Name)
	switch meta.APIVersion + " " + meta.Kind {
	case " ":
		return empty(document)
	case v1alpha1.APIVersion + " NodeGroup":
		var g v1alpha1.NodeGroup
		if err := yaml.UnmarshalStrict(document, &g); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		o.Groups = append(o.Groups, g)
	case v1alpha1.APIVersion + " PodBehavior":
		var b v1alpha1.PodBehavior
		if err := yaml.UnmarshalStrict(document, &b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		o.Rules = append(o.Rules, b)
	case "v1 Node":
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		o.Groups = append(o.Groups, v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{Count: 1, Template: runtime.RawExtension{Raw: raw}}})
	default:
		return fmt.Errorf("%s of %q: must be a NodeGroup or PodBehavior of %s, or a Node of v1", name, meta.APIVersion, v1alpha1.APIVersion)
	}
	return nil
}

// empty lets documents pass that have comments only.
func empty(document []byte) error {
	var content any
	if err := yaml.Unmarshal(document, &content); err != nil || content != nil {
		return errors.Join(err, errors.New("has no apiVersion and kind"))
	}
	return nil
}

// check finds everything that would be wrong when the objects are used.
func (o *Objects) check() error {
	names := map[string]bool{}
	for i := range o.Groups {
		nodes, err := Nodes(&o.Groups[i], 1)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			if names[n.Name] {
				return fmt.Errorf("node %q: there is a second one of that name", n.Name)
			}
			names[n.Name] = true
		}
	}
	_, err := behavior.Compile(o.Rules)
	return err
}
