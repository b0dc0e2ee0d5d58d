package peer

import (
	"fmt"
	"slices"

	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/usernamespaceshostnetwork"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// driver tells its capacity and has limits, needed wants no pods where it is not; claims have nClaims names.
const (
	driver  = "csi.example.com"
	needed  = "needed.example.com"
	nClaims = 8
)

// storage makes what a world has of volumes.
func (m *maker) storage(w *world) {
	for _, class := range m.classes() {
		w.setClass(class)
	}
	yes, no := true, false
	w.setDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes, PreventPodSchedulingIfMissing: &no}})
	w.setDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: needed}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &yes}})
	for i := range 3 {
		w.setCapacity(m.capacity(i))
	}
	for i := range 12 {
		w.setVolume(m.volume(i))
	}
	for ns := range 3 {
		for i := range nClaims {
			if m.chance(97) {
				w.setClaim(m.claim(fmt.Sprintf("ns%d", ns), fmt.Sprintf("claim%d", i)))
			}
		}
	}
}

func (m *maker) classes() []*storagev1.StorageClass {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	zones := []v1.TopologySelectorTerm{{MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{
		{Key: v1.LabelTopologyZone, Values: []string{m.word("zone", 3), m.word("zone", 3)}},
	}}}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	return []*storagev1.StorageClass{
		{ObjectMeta: meta("local"), Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &wait},
		{ObjectMeta: meta("fast"), Provisioner: driver, VolumeBindingMode: &wait},
		{ObjectMeta: meta("zonal"), Provisioner: needed, VolumeBindingMode: &wait, AllowedTopologies: zones},
		{ObjectMeta: meta("now"), Provisioner: driver, VolumeBindingMode: &now},
	}
}

// capacity is of nodes that no other capacity is of: which of two the reference takes depends on the order of a map.
func (m *maker) capacity(i int) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("capacity%d", i)}, StorageClassName: "fast",
		NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelTopologyZone: fmt.Sprintf("zone%d", i)}},
	}
	size := amount(int64(1+m.IntN(40)) << 30)
	c.Capacity = &size
	if m.chance(30) {
		largest := amount(int64(1+m.IntN(10)) << 30)
		c.MaximumVolumeSize = &largest
	}
	return c
}

// volume makes a volume whose size is no other's.
func (m *maker) volume(i int) *v1.PersistentVolume {
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("volume%d", i), Labels: map[string]string{}}}
	v.Spec.StorageClassName = pick(m, "local", "local", "fast", "now")
	v.Spec.AccessModes = pick(m, []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany})
	v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: amount(int64(1+m.IntN(20))<<30 + int64(i))}
	v.Status.Phase = pick(m, v1.VolumeAvailable, v1.VolumeAvailable, v1.VolumeAvailable, v1.VolumeReleased)
	if m.chance(90) {
		v.Labels[pick(m, v1.LabelTopologyZone, v1.LabelFailureDomainBetaZone)] = pick(m, "zone0", "zone1", "zone2", "zone0__zone2", "")
	}
	if m.chance(30) {
		term := m.nodeTerm()
		term.MatchFields = nil
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}
	}
	if m.chance(80) {
		v.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: fmt.Sprintf("handle%d", i)}
	}
	if m.chance(15) {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: m.word("ns", 3), Name: m.word("claim", nClaims)}
	}
	return v
}

func (m *maker) claim(namespace, name string) *v1.PersistentVolumeClaim {
	class := pick(m, "local", "fast", "fast", "zonal", "zonal", "zonal")
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(namespace + name), Annotations: map[string]string{},
	}}
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{pick(m, v1.ReadWriteOnce, v1.ReadWriteOnce, v1.ReadWriteOnce, v1.ReadWriteOncePod)}
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: amount(int64(1+m.IntN(8)) << 30)}
	switch {
	case m.chance(58):
		c.Spec.VolumeName = m.word("volume", 12) + pick(m, "", "", "", "", "", "", "", "", "", "", "", "", "", "", "x")
		if m.chance(95) {
			c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		}
	case m.chance(6):
		c.Annotations["volume.kubernetes.io/selected-node"] = m.word("node", 12)
	case m.chance(5):
		class = "now"
	}
	switch {
	case m.chance(2):
		c.Status.Phase = v1.ClaimLost
	case m.chance(2):
		c.DeletionTimestamp = &metav1.Time{}
	}
	return c
}

// csiNode makes what drivers say of a node.
func (m *maker) csiNode(name string) *storagev1.CSINode {
	limit := int32(1 + m.IntN(2))
	n := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if m.chance(60) {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{
			Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &limit},
		})
	}
	if m.chance(70) {
		n.Spec.Drivers = append(n.Spec.Drivers, storagev1.CSINodeDriver{Name: needed, NodeID: name})
	}
	return n
}

// attachment tells that a node still has a volume.
func (m *maker) attachment(i int, node string) *storagev1.VolumeAttachment {
	volume := m.word("volume", 12)
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("attachment%d", i)}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

// volumes gives a pod volumes.
func (m *maker) volumes(p *v1.Pod) {
	add := func(source v1.VolumeSource) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: fmt.Sprintf("v%d", len(p.Spec.Volumes)), VolumeSource: source})
	}
	if m.chance(32) {
		for range 1 + m.IntN(2) {
			add(v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: m.word("claim", nClaims)}})
		}
	}
	if m.chance(1) {
		add(v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}})
	}
	if !m.chance(14) {
		return
	}
	switch m.IntN(4) {
	case 0:
		add(v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: m.word("disk", 2), ReadOnly: m.chance(50)}})
	case 1:
		add(v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: m.word("disk", 2)}})
	case 2:
		add(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{IQN: m.word("iqn", 2), ReadOnly: m.chance(50)}})
	default:
		add(v1.VolumeSource{RBD: &v1.RBDVolumeSource{
			CephMonitors: []string{m.word("mon", 2), m.word("mon", 3)}, RBDPool: "pool", RBDImage: m.word("image", 2), ReadOnly: m.chance(50),
		}})
	}
}

// features gives a pod what not every node can do.
func (m *maker) features(p *v1.Pod) {
	if m.chance(12) {
		no := false
		p.Spec.HostNetwork, p.Spec.HostUsers = true, &no
	}
}

func (m *maker) declare(n *v1.Node) {
	if m.chance(60) {
		n.Status.DeclaredFeatures = []string{usernamespaceshostnetwork.Feature.Name()}
	}
}

// comparePlan compares what each would have bound and provisioned on the node chosen. The reference does not tell which
// volume it would bind, but how large it is, and no two are equal.
func (w *world) comparePlan(t *trial, ours *storage.Plan) []string {
	if t.verdict.chosen == "" {
		return nil
	}
	claims, err := w.ref.binder.GetPodVolumeClaims(w.ref.log, t.pod)
	must(err)
	found, _, err := w.ref.binder.FindPodVolumes(w.ref.log, t.pod, claims, w.nodes[t.verdict.chosen])
	must(err)
	var want, have []string
	for _, b := range found.StaticBindings {
		want = append(want, fmt.Sprintf("%+v", *b.StorageResource()))
	}
	for _, p := range found.DynamicProvisions {
		want = append(want, p.PVC.Name)
	}
	if ours == nil {
		ours = &storage.Plan{}
	}
	for _, b := range ours.Bind {
		request, capacity := b.Claim.Spec.Resources.Requests[v1.ResourceStorage], b.Volume.Spec.Capacity[v1.ResourceStorage]
		have = append(have, fmt.Sprintf("%+v", volumebinding.StorageResource{Requested: request.Value(), Capacity: capacity.Value()}))
	}
	for _, p := range ours.Provision {
		have = append(have, p.Claim.Name)
	}
	slices.Sort(want)
	slices.Sort(have)
	return same("volumes", want, have)
}

func (w *world) setClass(c *storagev1.StorageClass) {
	w.core.Ledger.Storage.SetClass(c)
	must(w.ref.factory.Storage().V1().StorageClasses().Informer().GetStore().Add(c))
}

func (w *world) setDriver(d *storagev1.CSIDriver) {
	w.core.Ledger.Storage.SetDriver(d)
	must(w.ref.factory.Storage().V1().CSIDrivers().Informer().GetStore().Add(d))
}

func (w *world) setCapacity(c *storagev1.CSIStorageCapacity) {
	w.core.Ledger.Storage.SetCapacity(c)
	must(w.ref.factory.Storage().V1().CSIStorageCapacities().Informer().GetStore().Add(c))
}

func (w *world) setVolume(v *v1.PersistentVolume) {
	w.core.Ledger.Storage.SetVolume(v)
	must(w.ref.factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(v))
}

func (w *world) setClaim(c *v1.PersistentVolumeClaim) {
	w.core.Ledger.Storage.SetClaim(c)
	must(w.ref.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Add(c))
}

func (w *world) setCSINode(n *storagev1.CSINode) {
	w.core.Ledger.Storage.SetCSINode(n)
	must(w.ref.factory.Storage().V1().CSINodes().Informer().GetStore().Add(n))
}

func (w *world) setAttachment(a *storagev1.VolumeAttachment) {
	w.core.Ledger.Storage.SetAttachment(a)
	must(w.ref.factory.Storage().V1().VolumeAttachments().Informer().GetStore().Add(a))
}
