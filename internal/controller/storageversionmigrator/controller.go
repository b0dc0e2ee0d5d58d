// Package storageversionmigrator writes all objects of a resource anew, so that the store has them in the version that is current, or encrypted by the key that is.
//
// Events of StorageVersionMigrations lead to a sync of the migration. A sync says that it runs, lists the resource page by page, sends a patch without a change
// for each object (the API server writes what is stored in another form, and nothing otherwise), and says how it ended. For a custom resource it also says in
// the CustomResourceDefinition's status that the old versions are stored no more (definition.go). A sync that breaks off begins anew: what is written is in
// the right form already.
package storageversionmigrator

import (
	"context"
	"fmt"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	migrationlisters "k8s.io/client-go/listers/storagemigration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/controller"
)

// Name is the controller's name in logs and metrics.
const Name = "storage-version-migrator-controller"

// Reasons of the conditions, as in Kubernetes.
const (
	reasonRunning   = "MigrationRunning"
	reasonCompleted = "MigrationCompleted"
	reasonSucceeded = "StorageVersionMigrationSucceeded"
	reasonFailed    = "StorageVersionMigrationFailed"
)

// Controller runs migrations, one at a time.
type Controller struct {
	*controller.Loop
	client     kubernetes.Interface
	metadata   metadata.Interface
	clock      clock.PassiveClock
	fresh      *controller.Freshness
	migrations migrationlisters.StorageVersionMigrationLister
}

// New makes the controller.
func New(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	migrations := deps.Informers.Storagemigration().V1().StorageVersionMigrations()
	c := &Controller{client: deps.Client, metadata: deps.Metadata, clock: deps.Clock, fresh: controller.NewFreshness(), migrations: migrations.Lister()}
	deps.Workers = 1
	c.Loop = controller.NewLoop(Name, deps, c.sync)
	changed := func(m *migrationv1.StorageVersionMigration) {
		if !ended(m) {
			c.AddObject(m)
		}
	}
	return c, c.Handle(migrations.Informer(), controller.Handlers[*migrationv1.StorageVersionMigration]{
		Add: changed, Update: func(_, m *migrationv1.StorageVersionMigration) { changed(m) },
		Delete: func(m *migrationv1.StorageVersionMigration) { c.fresh.Forget(m.UID) },
	})
}

func ended(m *migrationv1.StorageVersionMigration) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1.MigrationSucceeded)) ||
		meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1.MigrationFailed))
}

func (c *Controller) sync(ctx context.Context, name string) error {
	m, err := c.migrations.Get(name)
	if err != nil {
		return controller.IgnoreNotFound(err)
	}
	if ended(m) || m.DeletionTimestamp != nil || c.fresh.Stale(m) {
		return nil // the event of our own write, if it is on its way, brings us back
	}
	if err := c.migrate(ctx, m.DeepCopy()); err != nil {
		return fmt.Errorf("StorageVersionMigration %s: %w", name, err)
	}
	return nil
}

// migrate runs a migration to its end. An error of its own is one that may pass; what will not pass is the migration's failure.
func (c *Controller) migrate(ctx context.Context, m *migrationv1.StorageVersionMigration) error {
	of, err := c.served(m.Spec.Resource)
	if err != nil {
		return err
	}
	if of.Resource == "" {
		return c.fail(ctx, m, fmt.Errorf("resource %s is not served, or its objects cannot be listed and patched", resourceName(m)))
	}
	crd, err := c.definition(ctx, m.Spec.Resource)
	if err != nil {
		return err
	}
	if m, err = c.begin(ctx, m, crd); err != nil {
		return err
	}
	total, err := c.rewrite(ctx, m, of)
	switch {
	case err == nil:
	case passes(err):
		return fmt.Errorf("after %d objects: %w", total, err)
	default:
		if err := c.endDefinition(ctx, crd, false); err != nil {
			return err
		}
		return c.fail(ctx, m, err)
	}
	if err := c.endDefinition(ctx, crd, true); err != nil {
		return err
	}
	c.set(m, migrationv1.MigrationRunning, metav1.ConditionFalse, reasonCompleted, "Migration completed")
	c.set(m, migrationv1.MigrationSucceeded, metav1.ConditionTrue, reasonSucceeded, "Migration completed")
	_, err = c.write(ctx, m)
	return err
}

// passes tells whether it is of use to try again later.
func passes(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || apierrors.IsResourceExpired(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown
}

// begin says that the migration runs, first in the definition of a custom resource.
func (c *Controller) begin(ctx context.Context, m *migrationv1.StorageVersionMigration, crd *definition) (*migrationv1.StorageVersionMigration, error) {
	if meta.IsStatusConditionTrue(m.Status.Conditions, string(migrationv1.MigrationRunning)) {
		return m, nil
	}
	if err := c.beginDefinition(ctx, crd, m.Name); err != nil {
		return nil, err
	}
	c.set(m, migrationv1.MigrationRunning, metav1.ConditionTrue, reasonRunning, "The migration is running")
	return c.write(ctx, m)
}

func (c *Controller) fail(ctx context.Context, m *migrationv1.StorageVersionMigration, why error) error {
	c.set(m, migrationv1.MigrationRunning, metav1.ConditionFalse, reasonCompleted, "Migration completed")
	c.set(m, migrationv1.MigrationFailed, metav1.ConditionTrue, reasonFailed, fmt.Sprintf("migration encountered unhandled error: %v", why))
	_, err := c.write(ctx, m)
	return err
}

func (c *Controller) set(m *migrationv1.StorageVersionMigration, kind migrationv1.MigrationConditionType, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{
		Type: string(kind), Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(c.clock.Now()),
	})
}

func (c *Controller) write(ctx context.Context, m *migrationv1.StorageVersionMigration) (*migrationv1.StorageVersionMigration, error) {
	written, err := c.client.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(ctx, m, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	c.fresh.Wrote(written)
	return written, nil
}

func resourceName(m *migrationv1.StorageVersionMigration) string { return m.Spec.Resource.String() }
