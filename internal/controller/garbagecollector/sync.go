package garbagecollector

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/controller"
)

// sync looks at one object, named by its UID.
func (c *Controller) sync(ctx context.Context, key string) error {
	o := c.graph.get(types.UID(key))
	switch {
	case o == nil:
		return nil
	case o.deleting && (o.foreground || o.orphan):
		if complete, wait := c.monitors.complete(); !complete {
			c.pause(key, wait)
			return nil
		}
		if o.orphan {
			return c.orphanDependents(ctx, o)
		}
		return c.deleteDependents(ctx, o)
	case o.deleting || len(o.owners) == 0:
		return nil
	}
	err := c.collect(ctx, o)
	if apierrors.IsConflict(err) {
		// The object changed since the graph saw it. Its references are read again and decided anew.
		fresh, err := c.client(o).Get(ctx, o.name, metav1.GetOptions{})
		if err != nil || fresh.UID != o.uid || fresh.DeletionTimestamp != nil {
			return controller.IgnoreNotFound(err)
		}
		return c.collect(ctx, newObject(o.resource, fresh))
	}
	return err
}

func (c *Controller) client(o *object) metadata.ResourceInterface {
	if o.resource.namespaced {
		return c.metadata.Resource(o.resource.GroupVersionResource).Namespace(o.namespace)
	}
	return c.metadata.Resource(o.resource.GroupVersionResource)
}

// owners sorts an object's references by what has become of the owners.
type owners struct {
	solid, waiting, gone []metav1.OwnerReference
	unseen               bool // an owner lives that the graph does not know: its deletion might be missed
}

// collect deletes the object if no owner lives, or takes away the references to those that are gone.
func (c *Controller) collect(ctx context.Context, o *object) error {
	refs, err := c.classify(ctx, o)
	if err != nil {
		return err
	}
	switch {
	case len(refs.solid) > 0:
		if len(refs.gone)+len(refs.waiting) > 0 {
			return c.writeOwners(ctx, o, refs.solid)
		}
		if refs.unseen {
			return controller.Again("an owner lives that no watch has shown yet")
		}
		return nil
	case len(refs.waiting) > 0 && len(c.graph.dependentsOf(o.uid)) > 0:
		if c.inCycle(o) {
			if err := c.unblock(ctx, o); err != nil {
				return err
			}
		}
		return c.delete(ctx, o, metav1.DeletePropagationForeground)
	}
	policy := metav1.DeletePropagationBackground
	switch {
	case o.orphan:
		policy = metav1.DeletePropagationOrphan
	case o.foreground:
		policy = metav1.DeletePropagationForeground
	}
	return c.delete(ctx, o, policy)
}

// inCycle tells whether one of the object's dependents already waits for its own dependents: waiting for it could mean waiting for itself.
func (c *Controller) inCycle(o *object) bool {
	for _, dependent := range c.graph.dependentsOf(o.uid) {
		if dependent.waiting() {
			return true
		}
	}
	return false
}

func (c *Controller) classify(ctx context.Context, o *object) (out owners, err error) {
	for _, ref := range o.owners {
		if owner := c.graph.get(ref.UID); owner != nil && owner.is(ref, o.namespace) {
			if owner.waiting() {
				out.waiting = append(out.waiting, ref)
			} else {
				out.solid = append(out.solid, ref)
			}
			continue
		}
		owner, err := c.ask(ctx, ref, o.namespace)
		switch {
		case err != nil:
			return out, err
		case owner == nil:
			out.gone = append(out.gone, ref)
		case owner.waiting():
			out.waiting = append(out.waiting, ref)
		default:
			out.solid = append(out.solid, ref)
			out.unseen = true
		}
	}
	return out, nil
}

// ask reads an owner from the API server. nil means that it is gone for good.
func (c *Controller) ask(ctx context.Context, ref metav1.OwnerReference, namespace string) (*object, error) {
	key := absentKey{ref.APIVersion, ref.Kind, ref.Name, namespace, ref.UID}
	if _, gone := c.absent.Get(key); gone {
		return nil, nil
	}
	r, found := c.monitors.lookUp(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind))
	if !found {
		c.askDiscovery()
		return nil, fmt.Errorf("owner %s %s %q of an object in namespace %q: the API server does not serve this kind", ref.APIVersion, ref.Kind, ref.Name, namespace)
	}
	var fresh *metav1.PartialObjectMetadata
	var err error
	switch {
	case !r.namespaced:
		fresh, err = c.metadata.Resource(r.GroupVersionResource).Get(ctx, ref.Name, metav1.GetOptions{})
	case namespace == "":
		klog.FromContext(ctx).V(2).Info("Object without namespace names an owner that lives in one; such an owner cannot exist", "owner", ref.Name, "kind", ref.Kind)
		return nil, fmt.Errorf("owner %s %q lives in a namespace, its dependent does not: nothing is deleted for it", ref.Kind, ref.Name)
	default:
		fresh, err = c.metadata.Resource(r.GroupVersionResource).Namespace(namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) || (err == nil && fresh.UID != ref.UID) {
		c.absent.Add(key, nil)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read owner %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return newObject(r, fresh), nil
}

// absentKey is an owner that is gone: with its UID, it never comes back.
type absentKey struct {
	apiVersion, kind, name, namespace string
	uid                               types.UID
}
