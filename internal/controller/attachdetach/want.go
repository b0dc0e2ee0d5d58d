package attachdetach

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/controller"
)

// namePrefix begins the names of attachments that are made here, as in Kubernetes: drivers and tools know them.
const namePrefix = "csi-"

// uniquePrefix begins the names of CSI volumes in a Node's status.
const uniquePrefix = "kubernetes.io/csi/"

// need is a volume that pods of a node need.
type need struct {
	volume *corev1.PersistentVolume
	pods   []*corev1.Pod
}

func (n *need) driver() string { return n.volume.Spec.CSI.Driver }

func attachmentName(handle, driver, node string) string {
	return fmt.Sprintf("%s%x", namePrefix, sha256.Sum256([]byte(handle+driver+node)))
}

func uniqueName(driver, handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(uniquePrefix + driver + "^" + handle)
}

// attachmentOf is the name of the attachment of a volume in a Node's status; empty when it is no CSI volume.
func attachmentOf(unique corev1.UniqueVolumeName, node string) string {
	rest, isCSI := strings.CutPrefix(string(unique), uniquePrefix)
	driver, handle, both := strings.Cut(rest, "^")
	if !isCSI || !both {
		return ""
	}
	return attachmentName(handle, driver, node)
}

func volumeOf(a *storagev1.VolumeAttachment) string {
	return ptr.Deref(a.Spec.Source.PersistentVolumeName, "")
}

// needs lists what the pods of a node need, by the names of the attachments.
func (c *Controller) needs(node string) (map[string]*need, error) {
	out := map[string]*need{}
	for _, pod := range controller.PodsOnNode(c.podIndex, node) {
		if controller.IsPodFinished(pod) {
			continue
		}
		for i := range pod.Spec.Volumes {
			volume, err := c.attachable(pod, &pod.Spec.Volumes[i])
			if err != nil {
				return nil, err
			}
			if volume == nil {
				continue
			}
			name := attachmentName(volume.Spec.CSI.VolumeHandle, volume.Spec.CSI.Driver, node)
			if out[name] == nil {
				out[name] = &need{volume: volume}
			}
			out[name].pods = append(out[name].pods, pod)
		}
	}
	return out, nil
}

// attachable is the PersistentVolume behind a pod's volume if it has to be attached; nil otherwise, and as long as it is not bound.
func (c *Controller) attachable(pod *corev1.Pod, v *corev1.Volume) (*corev1.PersistentVolume, error) {
	var name string
	switch {
	case v.PersistentVolumeClaim != nil:
		name = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		name = ephemeral.VolumeClaimName(pod, v)
	default:
		return nil, nil
	}
	claim, err := c.claims.PersistentVolumeClaims(pod.Namespace).Get(name)
	if err != nil {
		return nil, controller.IgnoreNotFound(err)
	}
	if v.Ephemeral != nil && ephemeral.VolumeIsForPod(pod, claim) != nil || claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return nil, nil
	}
	volume, err := c.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return nil, controller.IgnoreNotFound(err)
	}
	if ref := volume.Spec.ClaimRef; volume.Spec.CSI == nil || ref == nil || ref.UID != claim.UID {
		return nil, nil
	}
	driver, err := c.drivers.Get(volume.Spec.CSI.Driver)
	if apierrors.IsNotFound(err) {
		return volume, nil // a driver that says nothing of itself attaches
	}
	if err != nil || !ptr.Deref(driver.Spec.AttachRequired, true) {
		return nil, err
	}
	return volume, nil
}

// shareable tells whether a volume may be attached to several nodes.
func shareable(volume *corev1.PersistentVolume) bool {
	return slices.Contains(volume.Spec.AccessModes, corev1.ReadWriteMany) || slices.Contains(volume.Spec.AccessModes, corev1.ReadOnlyMany)
}
