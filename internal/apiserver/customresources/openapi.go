package customresources

import (
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// description is what OpenAPI says about the resource of one definition, as it was at one generation. It is made when somebody asks.
type description struct {
	uid        types.UID
	generation int64
	v2         cached.Value[*spec.Swagger]
	// v3 is by path of the group version.
	v3 map[string]cached.Value[*spec3.OpenAPI]
}

func describe(crd *apiextensionsv1.CustomResourceDefinition) *description {
	d := &description{uid: crd.UID, generation: crd.Generation, v3: map[string]cached.Value[*spec3.OpenAPI]{}}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			d.v3["apis/"+crd.Spec.Group+"/"+v.Name] = made(crd, v.Name, func() (*spec3.OpenAPI, error) {
				return builder.BuildOpenAPIV3(crd, v.Name, builder.Options{IncludeSelectableFields: true})
			})
		}
	}
	d.v2 = made(crd, "OpenAPI v2", func() (*spec.Swagger, error) { return swagger(crd) })
	return d
}

// made calls fn once. A schema that cannot be described is told in the log and left out: it must not take away what is said of all others.
func made[T any](crd *apiextensionsv1.CustomResourceDefinition, what string, fn func() (*T, error)) cached.Value[*T] {
	return cached.Once(cached.Func(func() (*T, string, error) {
		described, err := fn()
		if err != nil {
			klog.Background().Error(err, "A custom resource cannot be described", "customResourceDefinition", klog.KObj(crd), "description", what)
			return nil, "", nil
		}
		return described, fmt.Sprintf("%s/%d/%s", crd.UID, crd.Generation, what), nil
	}))
}

// swagger describes all versions of one definition.
func swagger(crd *apiextensionsv1.CustomResourceDefinition) (*spec.Swagger, error) {
	merged := &spec.Swagger{}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		described, err := builder.BuildOpenAPIV2(crd, v.Name, builder.Options{V2: true, IncludeSelectableFields: true})
		if err != nil {
			return nil, err
		}
		// The part that has the built-in kinds is without defaults too.
		described.Definitions = handler.PruneDefaults(described.Definitions)
		if merged, err = builder.MergeSpecs(merged, described); err != nil {
			return nil, err
		}
	}
	return merged, nil
}

// paths are those of the group versions that are described; a description that is not there has none.
func (d *description) paths() []string {
	if d == nil {
		return nil
	}
	return slices.Collect(maps.Keys(d.v3))
}

func (p *published) partsV3(path string) []cached.Value[*spec3.OpenAPI] {
	var parts []cached.Value[*spec3.OpenAPI]
	for _, d := range p.described {
		if part := d.v3[path]; part != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

func (p *published) partsV2() []cached.Value[*spec.Swagger] {
	var parts []cached.Value[*spec.Swagger]
	for _, d := range p.described {
		parts = append(parts, d.v2)
	}
	return parts
}

func mergedV3(parts []cached.Value[*spec3.OpenAPI]) cached.Value[*spec3.OpenAPI] {
	return cached.MergeList(func(results []cached.Result[*spec3.OpenAPI]) (*spec3.OpenAPI, string, error) {
		specs, tag := gathered(results)
		merged, err := builder.MergeSpecsV3(specs...)
		return merged, tag, err
	}, parts)
}

func mergedV2(builtin cached.Value[*spec.Swagger], parts []cached.Value[*spec.Swagger]) cached.Value[*spec.Swagger] {
	return cached.MergeList(func(results []cached.Result[*spec.Swagger]) (*spec.Swagger, string, error) {
		if results[0].Err != nil {
			return nil, "", results[0].Err
		}
		specs, tag := gathered(results)
		merged, err := builder.MergeSpecs(specs[0], specs[1:]...)
		return merged, tag, err
	}, append([]cached.Value[*spec.Swagger]{builtin}, parts...))
}

// gathered are the values that could be made, and a tag that changes when one of them does.
func gathered[T any](results []cached.Result[*T]) (values []*T, tag string) {
	for _, r := range results {
		if r.Value != nil {
			values, tag = append(values, r.Value), tag+r.Etag+"\n"
		}
	}
	return values, tag
}
