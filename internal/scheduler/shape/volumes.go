package shape

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ndf "k8s.io/component-helpers/nodedeclaredfeatures/features"
	ndftypes "k8s.io/component-helpers/nodedeclaredfeatures/types"
)

// Claim is a PersistentVolumeClaim that a pod uses.
type Claim struct {
	Name string
	// Pod and UID are set for a generic ephemeral volume: the claim must have been made for this very pod.
	Pod string
	UID types.UID
}

// claims lists the claims of a pod's volumes, in order.
func claims(pod *v1.Pod) (out []Claim) {
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			out = append(out, Claim{Name: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			out = append(out, Claim{Name: pod.Name + "-" + v.Name, Pod: pod.Name, UID: pod.UID})
		}
	}
	return out
}

// Disk is an in-line volume that cannot be mounted twice in every way.
type Disk struct {
	// Kind and Name are what must be equal for two disks to be the same.
	Kind, Name string
	// Monitors is set for Ceph RBD: the same disk has one of them in common.
	Monitors []string
	// ReadOnly disks do not conflict with each other; where that makes no difference it is false.
	ReadOnly bool
}

// Conflicts reports whether two disks cannot be on one node.
func (d *Disk) Conflicts(other *Disk) bool {
	if d.Kind != other.Kind || d.Name != other.Name || d.ReadOnly && other.ReadOnly {
		return false
	}
	if d.Kind != "rbd" {
		return true
	}
	for _, a := range d.Monitors {
		for _, b := range other.Monitors {
			if a == b {
				return true
			}
		}
	}
	return false
}

func disks(pod *v1.Pod) (out []Disk) {
	for i := range pod.Spec.Volumes {
		switch v := &pod.Spec.Volumes[i].VolumeSource; {
		case v.GCEPersistentDisk != nil:
			out = append(out, Disk{Kind: "gce", Name: v.GCEPersistentDisk.PDName, ReadOnly: v.GCEPersistentDisk.ReadOnly})
		case v.AWSElasticBlockStore != nil:
			out = append(out, Disk{Kind: "aws", Name: v.AWSElasticBlockStore.VolumeID})
		case v.ISCSI != nil:
			out = append(out, Disk{Kind: "iscsi", Name: v.ISCSI.IQN, ReadOnly: v.ISCSI.ReadOnly})
		case v.RBD != nil:
			out = append(out, Disk{
				Kind: "rbd", Name: v.RBD.RBDPool + "/" + v.RBD.RBDImage, Monitors: v.RBD.CephMonitors, ReadOnly: v.RBD.ReadOnly,
			})
		}
	}
	return out
}

// volumes writes what claims and disks would be made of.
func (k *key) volumes(pod *v1.Pod) {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			k.string(v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			k.string(v.Name)
			k.string(pod.Name)
			k.string(string(pod.UID))
		case v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil:
			for _, d := range disks(&v1.Pod{Spec: v1.PodSpec{Volumes: pod.Spec.Volumes[i : i+1]}}) {
				k.string(d.Kind)
				k.string(d.Name)
				k.strings(d.Monitors)
				k.bool(d.ReadOnly)
			}
		default:
			continue
		}
		k.number(int64(i))
	}
	k.number(-1)
}

// inferFeatures collects the names of the features that a node has to declare to run the pod.
func (t *Table) inferFeatures(pod *v1.Pod) {
	t.features, t.info = t.features[:0], ndftypes.PodInfo{Spec: &pod.Spec}
	for _, feature := range ndf.AllFeatures {
		if feature.InferForScheduling(&t.info) {
			t.features = append(t.features, feature.Name())
		}
	}
}
