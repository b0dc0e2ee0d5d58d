package rbac

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// check says why an object may not be written by the user of the context; old is nil when it is new.
type check func(ctx context.Context, obj, old runtime.Object) error

// guard is a storage with a check before each write.
type guard struct {
	*resource.Storage
	check check
}

// Create implements rest.Creater.
func (g *guard) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if !isMaster(ctx) {
		if err := g.check(ctx, obj, nil); err != nil {
			return nil, err
		}
	}
	return g.Storage.Create(ctx, obj, validate, options)
}

// Update implements rest.Updater.
func (g *guard) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	if !isMaster(ctx) {
		info = rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
			if resource.OnlyForCollection(obj, old) {
				return obj, nil
			}
			return obj, g.check(ctx, obj, old)
		})
	}
	return g.Storage.Update(ctx, name, info, create, update, forceCreate, options)
}

// isMaster: the masters hold everything, and the API server, which is one, works before roles are known.
func isMaster(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return ok && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}
