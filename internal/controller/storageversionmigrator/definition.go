package storageversionmigrator

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type definition = apiextensionsv1.CustomResourceDefinition

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// definition reads the definition of a custom resource; nil when the resource is not one.
func (c *Controller) definition(ctx context.Context, of metav1.GroupResource) (*definition, error) {
	name := of.Resource + "." + of.Group
	if of.Group == "" {
		return nil, nil
	}
	text, err := c.client.StoragemigrationV1().RESTClient().Get().AbsPath("apis", definitions.Group, definitions.Version, definitions.Resource, name).
		SetHeader("Accept", "application/json").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	crd := &definition{}
	if err := json.Unmarshal(text, crd); err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	return crd, nil
}

// beginDefinition notes which generation of the definition the objects are written by.
func (c *Controller) beginDefinition(ctx context.Context, crd *definition, migration string) error {
	if crd == nil {
		return nil
	}
	return c.patchDefinition(ctx, crd, nil, apiextensionsv1.ConditionTrue, "MigrationRunning", fmt.Sprintf("Migration %s is running", migration))
}

// endDefinition says that the other versions are stored no more, unless the definition has changed since the begin.
func (c *Controller) endDefinition(ctx context.Context, before *definition, success bool) error {
	if before == nil {
		return nil
	}
	crd, err := c.definition(ctx, metav1.GroupResource{Group: before.Spec.Group, Resource: before.Spec.Names.Plural})
	if err != nil || crd == nil {
		return err
	}
	if !success {
		return c.patchDefinition(ctx, crd, nil, apiextensionsv1.ConditionFalse, "MigrationFailed", "The migration has failed")
	}
	begun := slices.IndexFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.StorageMigrating && c.ObservedGeneration == crd.Generation
	})
	if begun < 0 {
		return c.patchDefinition(ctx, crd, nil, apiextensionsv1.ConditionFalse, "MigrationSucceeded",
			"The migration has succeeded but the stored versions have not been updated due to a generation mismatch")
	}
	var stored []string
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			stored = []string{version.Name}
		}
	}
	return c.patchDefinition(ctx, crd, stored, apiextensionsv1.ConditionFalse, "MigrationSucceeded",
		"The migration has succeeded and the stored versions have been updated")
}

func (c *Controller) patchDefinition(ctx context.Context, crd *definition, stored []string, status apiextensionsv1.ConditionStatus, reason, message string) error {
	conditions := slices.DeleteFunc(slices.Clone(crd.Status.Conditions), func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.StorageMigrating
	})
	next := map[string]any{"conditions": append(conditions, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.StorageMigrating, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(c.clock.Now()),
		ObservedGeneration: crd.Generation,
	})}
	if stored != nil {
		next["storedVersions"] = stored
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": crd.UID, "resourceVersion": crd.ResourceVersion}, "status": next})
	if err != nil {
		return err
	}
	if _, err := c.metadata.Resource(definitions).Patch(ctx, crd.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write the status of CustomResourceDefinition %s: %w", crd.Name, err)
	}
	return nil
}
