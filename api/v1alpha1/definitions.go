package v1alpha1

import (
	"bytes"
	_ "embed"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The resources of this package.
var (
	NodeGroups   = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "nodegroups"}
	PodBehaviors = schema.GroupVersionResource{Group: Group, Version: Version, Resource: "podbehaviors"}
)

//go:embed definitions.yaml
var definitions []byte

// Definitions are the CustomResourceDefinitions by which a cluster knows the types of this package.
func Definitions() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, document := range bytes.Split(definitions, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &u.Object); err != nil {
			return nil, fmt.Errorf("definitions of %s: %w", APIVersion, err)
		}
		out = append(out, u)
	}
	return out, nil
}
