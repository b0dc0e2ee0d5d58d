package source

import (
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// volumes are the kinds that tell where a pod's volumes can be.
func (s *Source) volumes() []kind {
	core, storages := s.factory.Core().V1(), s.factory.Storage().V1()
	return []kind{
		{v1.SchemeGroupVersion, "persistentvolumeclaims", core.PersistentVolumeClaims().Informer, s.claims()},
		{v1.SchemeGroupVersion, "persistentvolumes", core.PersistentVolumes().Informer,
			stored(s, (*storage.State).SetVolume, (*storage.State).DeleteVolume)},
		{storagev1.SchemeGroupVersion, "storageclasses", storages.StorageClasses().Informer,
			stored(s, (*storage.State).SetClass, (*storage.State).DeleteClass)},
		{storagev1.SchemeGroupVersion, "csinodes", storages.CSINodes().Informer,
			stored(s, (*storage.State).SetCSINode, (*storage.State).DeleteCSINode)},
		{storagev1.SchemeGroupVersion, "csidrivers", storages.CSIDrivers().Informer,
			stored(s, (*storage.State).SetDriver, (*storage.State).DeleteDriver)},
		{storagev1.SchemeGroupVersion, "volumeattachments", storages.VolumeAttachments().Informer,
			stored(s, (*storage.State).SetAttachment, (*storage.State).DeleteAttachment)},
		{storagev1.SchemeGroupVersion, "csistoragecapacities", storages.CSIStorageCapacities().Informer, s.capacities()},
	}
}

// stored watches a kind without namespaces.
func stored[T any, P interface {
	*T
	metav1.Object
}](s *Source, set func(*storage.State, P), remove func(*storage.State, string)) cache.ResourceEventHandler {
	put := func(apply func(*storage.State)) { s.store("", "", apply) }
	return handler(
		func(o *T) { put(func(state *storage.State) { set(state, o) }) },
		func(_, o *T) { put(func(state *storage.State) { set(state, o) }) },
		func(o *T) { put(func(state *storage.State) { remove(state, P(o).GetName()) }) },
	)
}

func (s *Source) claims() cache.ResourceEventHandler {
	set := func(o *v1.PersistentVolumeClaim) {
		s.store(o.Namespace, o.Name, func(state *storage.State) { state.SetClaim(o) })
	}
	return handler(set, func(_, o *v1.PersistentVolumeClaim) { set(o) }, func(o *v1.PersistentVolumeClaim) {
		s.store(o.Namespace, o.Name, func(state *storage.State) { state.DeleteClaim(o.Namespace, o.Name) })
	})
}

func (s *Source) capacities() cache.ResourceEventHandler {
	set := func(o *storagev1.CSIStorageCapacity) {
		s.store("", "", func(state *storage.State) { state.SetCapacity(o) })
	}
	return handler(set, func(_, o *storagev1.CSIStorageCapacity) { set(o) }, func(o *storagev1.CSIStorageCapacity) {
		s.store("", "", func(state *storage.State) { state.DeleteCapacity(o.Namespace, o.Name) })
	})
}

// store has the owner apply a change of what is known of volumes.
func (s *Source) store(namespace, claim string, apply func(*storage.State)) {
	s.mailbox.Put(func(c *core.Core, now time.Time) {
		apply(c.Ledger.Storage)
		c.StorageChanged(namespace, claim, now)
	})
}
