package clusterroleaggregation

import (
	"context"
	"testing"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// clusterRoles is how the API of these tests, which does not have them, comes to serve ClusterRoles.
const clusterRoles = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "clusterroles.rbac.authorization.k8s.io"},
	"spec": {"group": "rbac.authorization.k8s.io", "scope": "Cluster", "names": {"plural": "clusterroles", "kind": "ClusterRole"}, "versions": [{"name": "v1"}]}}`

func TestTranscripts(t *testing.T) {
	controllertest.Scripts(t, "testdata/*.txt", func(ctx context.Context, deps controller.Deps) (controller.Controller, error) {
		err := deps.Client.CoreV1().RESTClient().Post().AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").
			SetHeader("Content-Type", "application/json").Body([]byte(clusterRoles)).Do(ctx).Error()
		if err != nil {
			return nil, err
		}
		return New(ctx, deps)
	})
}
