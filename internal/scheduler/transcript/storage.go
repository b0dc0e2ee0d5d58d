package transcript

import (
	"fmt"

	"github.com/bayplan/bayplan/internal/scheduler/storage"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// storage runs the commands about volumes, and reports whether it knows the command: class NAME [wait] provisioner=,
// volume NAME class= size= labels= only=KEY=VALUE driver= for=CLAIM, claim NAME class= size= volume= once,
// csinode NODE driver=NAME limit=, driver NAME capacity needed, capacity NAME class= size= nodes=KEY=VALUE, written POD, settle.
func (s *script) storage(command, name string, a args) bool {
	state := s.core.Ledger.Storage
	switch command {
	case "class":
		state.SetClass(s.class(name, a))
	case "volume":
		state.SetVolume(stamp(s, s.volume(name, a)))
	case "claim":
		state.SetClaim(stamp(s, s.claim(name, a)))
	case "delete-claim":
		state.DeleteClaim("default", name)
	case "csinode":
		state.SetCSINode(csiNode(s, name, a))
	case "driver":
		yes, needed := a["capacity"] != nil, a["needed"] != nil
		state.SetDriver(&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes, PreventPodSchedulingIfMissing: &needed}})
	case "capacity":
		size := quantity(s.t, a.get("size", "0"))
		state.SetCapacity(&storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, StorageClassName: a.get("class", ""), Capacity: &size,
			NodeTopology: &metav1.LabelSelector{MatchLabels: set(a.get("nodes", ""))},
		})
	case "written":
		s.written(name)
		return true
	case "settle":
		s.settle()
		return true
	default:
		return false
	}
	claim := ""
	if command == "claim" {
		claim = name
	}
	s.core.StorageChanged("default", claim, s.now)
	return true
}

func (s *script) class(name string, a args) *storagev1.StorageClass {
	mode := storagev1.VolumeBindingImmediate
	if a["wait"] != nil {
		mode = storagev1.VolumeBindingWaitForFirstConsumer
	}
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, VolumeBindingMode: &mode, Provisioner: a.get("provisioner", "kubernetes.io/no-provisioner"),
	}
}

func (s *script) volume(name string, a args) *v1.PersistentVolume {
	v := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set(a.get("labels", ""))}}
	v.Spec.StorageClassName = a.get("class", "")
	v.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: quantity(s.t, a.get("size", "1Gi"))}
	v.Status.Phase = v1.VolumeAvailable
	if only := set(a.get("only", "")); len(only) > 0 {
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{
			NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: in(only)}},
		}}
	}
	if driver := a.get("driver", ""); driver != "" {
		v.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
	}
	if claim := a.get("for", ""); claim != "" {
		v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "default", Name: claim, UID: types.UID(claim)}
		v.Status.Phase = v1.VolumeBound
	}
	return v
}

func (s *script) claim(name string, a args) *v1.PersistentVolumeClaim {
	class := a.get("class", "")
	c := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Annotations: map[string]string{}}}
	c.Spec.StorageClassName = &class
	c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	if a["once"] != nil {
		c.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	}
	c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: quantity(s.t, a.get("size", "1Gi"))}
	if volume := a.get("volume", ""); volume != "" {
		c.Spec.VolumeName = volume
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	}
	if node := a.get("node", ""); node != "" {
		c.Annotations["volume.kubernetes.io/selected-node"] = node
	}
	return c
}

func csiNode(s *script, name string, a args) *storagev1.CSINode {
	driver := storagev1.CSINodeDriver{Name: a.get("driver", ""), NodeID: name}
	if limit := a.get("limit", ""); limit != "" {
		n := int32(number(s.t, limit))
		driver.Allocatable = &storagev1.VolumeNodeResources{Count: &n}
	}
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}}}
}

// stamp gives an object the next version.
func stamp[T metav1.Object](s *script, object T) T {
	s.version++
	object.SetResourceVersion(fmt.Sprint(s.version))
	return object
}

// written is the API server's word that a pod's plan is there. The watch has not told of it yet.
func (s *script) written(name string) {
	plan := s.plans[name]
	for i := range plan.Bind {
		plan.Bind[i].Volume = stamp(s, plan.Bind[i].Volume.DeepCopy())
	}
	for i := range plan.Provision {
		plan.Provision[i].Claim = stamp(s, plan.Provision[i].Claim.DeepCopy())
	}
	s.core.VolumesWritten(types.UID(name), s.now)
}

// volumes makes the volumes of a pod.
func volumes(a args) (out []v1.Volume) {
	for _, claim := range a["claim"] {
		source := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
		out = append(out, v1.Volume{Name: claim, VolumeSource: source})
	}
	for _, disk := range a["disk"] {
		source := v1.VolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: disk}}
		out = append(out, v1.Volume{Name: disk, VolumeSource: source})
	}
	return out
}

// plan shows what has to be written.
func (s *script) plan(pod string, plan *storage.Plan) {
	if plan == nil {
		return
	}
	s.plans[pod] = plan
	for _, b := range plan.Bind {
		fmt.Fprintf(&s.out, "  claim %s is bound to volume %s\n", b.Claim.Name, b.Volume.Name)
	}
	for _, p := range plan.Provision {
		fmt.Fprintf(&s.out, "  claim %s is provisioned for %s\n", p.Claim.Name, plan.Node)
	}
}

// settle shows whose volumes are bound now, or will not be.
func (s *script) settle() {
	for _, each := range s.core.Settled(s.now) {
		if each.Err != nil {
			fmt.Fprintf(&s.out, "%s: %v\n", each.Attempt.Pod.Name, each.Err)
			s.core.BindFailed(each.Attempt.Pod.UID, s.now)
			continue
		}
		fmt.Fprintf(&s.out, "%s can be bound to %s\n", each.Attempt.Pod.Name, each.Attempt.Node)
	}
}
