package attachdetach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
)

func (c *Controller) sync(ctx context.Context, name string) error {
	needs, err := c.needs(name)
	if err != nil {
		return err
	}
	node, err := c.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		node = nil
	} else if err != nil {
		return err
	}
	present := c.present(name)
	unneeded := c.unneeded(needs, present, node)
	attached := c.attached(needs, present, unneeded)
	if node != nil {
		// What the node is told comes before what is done: it must not mount what is about to be detached.
		if err := c.report(ctx, node, needs, attached); err != nil {
			return err
		}
	}
	var errs []error
	for _, a := range unneeded {
		errs = append(errs, c.detach(ctx, a))
	}
	for _, attachment := range slices.Sorted(maps.Keys(needs)) {
		if a := present[attachment]; a == nil && node != nil {
			errs = append(errs, c.attach(ctx, attachment, name, needs[attachment]))
		} else if a != nil && a.Status.AttachError != nil && !a.Status.Attached {
			tell(c, needs[attachment], corev1.EventTypeWarning, "FailedAttachVolume", "AttachVolume.Attach failed", ": "+a.Status.AttachError.Message)
		}
	}
	return errors.Join(errs...)
}

// present are the attachments of a node that are this controller's, by name.
func (c *Controller) present(node string) map[string]*storagev1.VolumeAttachment {
	out := map[string]*storagev1.VolumeAttachment{}
	for _, a := range c.indexed(byNode, node) {
		if len(a.Name) == len(attachmentName("", "", "")) && strings.HasPrefix(a.Name, namePrefix) && volumeOf(a) != "" {
			out[a.Name] = a
		}
	}
	return out
}

func (c *Controller) indexed(index, key string) []*storagev1.VolumeAttachment {
	objs, err := c.attachments.ByIndex(index, key)
	if err != nil {
		panic(err) // the index was not made: a mistake in the program
	}
	out := make([]*storagev1.VolumeAttachment, 0, len(objs))
	for _, obj := range objs {
		out = append(out, obj.(*storagev1.VolumeAttachment))
	}
	return out
}

// attached are the volumes that the node may use, in the form of its status.
func (c *Controller) attached(needs map[string]*need, present map[string]*storagev1.VolumeAttachment, unneeded []*storagev1.VolumeAttachment) []corev1.AttachedVolume {
	var out []corev1.AttachedVolume
	for _, name := range slices.Sorted(maps.Keys(present)) {
		a := present[name]
		if !a.Status.Attached || a.DeletionTimestamp != nil || slices.Contains(unneeded, a) {
			continue
		}
		if n := needs[name]; n != nil {
			out = append(out, corev1.AttachedVolume{Name: uniqueName(n.driver(), n.volume.Spec.CSI.VolumeHandle)})
		} else if volume, err := c.volumes.Get(volumeOf(a)); err == nil && volume.Spec.CSI != nil {
			out = append(out, corev1.AttachedVolume{Name: uniqueName(a.Spec.Attacher, volume.Spec.CSI.VolumeHandle)})
		}
	}
	return out
}

// report writes the attached volumes into the Node's status, and tells the pods whose volumes are new there.
func (c *Controller) report(ctx context.Context, node *corev1.Node, needs map[string]*need, attached []corev1.AttachedVolume) error {
	if equality.Semantic.DeepEqual(node.Status.VolumesAttached, attached) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"volumesAttached": attached}})
	if err != nil {
		return err
	}
	if _, err := c.client.CoreV1().Nodes().PatchStatus(ctx, node.Name, patch); controller.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the attached volumes of Node %s: %w", node.Name, err)
	}
	for _, v := range attached {
		if n := needs[attachmentOf(v.Name, node.Name)]; n != nil && !slices.Contains(node.Status.VolumesAttached, v) {
			tell(c, n, corev1.EventTypeNormal, "SuccessfulAttachVolume", "AttachVolume.Attach succeeded", " ")
		}
	}
	return nil
}

// tell records an event on each pod that needs the volume.
func tell(c *Controller, n *need, kind, reason, what, more string) {
	for _, pod := range n.pods {
		c.recorder.Event(pod, kind, reason, fmt.Sprintf("%s for volume %q%s", what, n.volume.Name, more))
	}
}

func (c *Controller) attach(ctx context.Context, name, node string, n *need) error {
	if settled, left := c.expectations.Satisfied(n.volume.Name); !settled {
		c.AddAfter(node, left)
		return nil
	}
	if others := c.indexed(byVolume, n.volume.Name); len(others) > 0 && !shareable(n.volume) {
		c.waitFor(n, node)
		return nil // the end of the other attachment brings us back
	}
	c.expectations.Creating(n.volume.Name)
	made, err := c.client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: n.driver(), NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &n.volume.Name},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		c.expectations.CreateFailed(n.volume.Name)
		return controller.IgnoreAlreadyExists(err)
	}
	c.expectations.Created(n.volume.Name, made.UID)
	return nil
}

// waitFor tells the pods of a node who has the volume that they need.
func (c *Controller) waitFor(n *need, node string) {
	for _, pod := range n.pods {
		var here []string
		if ref := n.volume.Spec.ClaimRef; ref != nil {
			for _, other := range controller.PodsOfClaim(c.podIndex, ref.Namespace, ref.Name) {
				if other.Spec.NodeName != "" && other.Spec.NodeName != node && !controller.IsPodFinished(other) {
					here = append(here, other.Name)
				}
			}
		}
		slices.Sort(here)
		why := "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node"
		if len(here) > 0 {
			why = "Volume is already used by pod(s) " + strings.Join(here, ", ")
		}
		c.recorder.Event(pod, corev1.EventTypeWarning, "FailedAttachVolume", fmt.Sprintf("Waiting for detach for volume %q %s", n.volume.Name, why))
	}
}
