package rbac

import (
	"testing"

	"github.com/bayplan/bayplan/internal/apiserver/resource/resourcetest"
)

func TestValidation(t *testing.T) {
	resourcetest.Run(t, map[string]resourcetest.Check{
		"Role":               resourcetest.Of(role()),
		"ClusterRole":        resourcetest.Of(clusterRole()),
		"RoleBinding":        resourcetest.Of(roleBinding()),
		"ClusterRoleBinding": resourcetest.Of(clusterRoleBinding()),
	})
}
