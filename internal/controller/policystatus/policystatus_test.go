package policystatus

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// configMaps knows the schema of one kind.
type configMaps struct{}

// ResolveSchema implements resolver.SchemaResolver.
func (configMaps) ResolveSchema(kind schema.GroupVersionKind) (*spec.Schema, error) {
	if kind.Kind != "ConfigMap" {
		return nil, resolver.ErrSchemaNotFound
	}
	metadata := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{"name": *spec.StringProperty()}}}
	return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{
		"metadata": metadata, "data": *spec.MapProperty(spec.StringProperty()), "immutable": *spec.BoolProperty(),
	}}}, nil
}

func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", func(_ context.Context, deps controller.Deps) (controller.Controller, error) {
		return newController(deps, configMaps{})
	})
}
