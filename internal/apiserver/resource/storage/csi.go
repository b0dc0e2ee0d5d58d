package storage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
	"github.com/bayplan/bayplan/internal/apiserver/resource/rules"
)

func csiDriver() *resource.Kind[*storagev1.CSIDriver] {
	return &resource.Kind[*storagev1.CSIDriver]{
		Resource:    "csidrivers",
		ClusterWide: true,
		New:         func() *storagev1.CSIDriver { return &storagev1.CSIDriver{} },
		NewList:     func() runtime.Object { return &storagev1.CSIDriverList{} },
		Default:     defaultDriver,
		Validate:    validateDriver,
		ValidateUpdate: func(d, old *storagev1.CSIDriver) field.ErrorList {
			errs := validateDriver(d)
			errs = append(errs, rules.Unchanged(d.Spec.AttachRequired, old.Spec.AttachRequired, spec.Child("attachedRequired"))...)
			return append(errs, rules.Unchanged(d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes, spec.Child("volumeLifecycleModes"))...)
		},
		Columns: []resource.Column[*storagev1.CSIDriver]{
			{Name: "AttachRequired", Type: "boolean", Description: "Whether volumes are attached to nodes first.", Value: func(d *storagev1.CSIDriver) any { return ptr.Deref(d.Spec.AttachRequired, true) }},
			{Name: "PodInfoOnMount", Type: "boolean", Description: "Whether the driver is told of the pod.", Value: func(d *storagev1.CSIDriver) any { return boolean(d.Spec.PodInfoOnMount) }},
			{Name: "StorageCapacity", Type: "boolean", Description: "Whether the driver publishes what it has left.", Value: func(d *storagev1.CSIDriver) any { return boolean(d.Spec.StorageCapacity) }},
			{Name: "TokenRequests", Description: "Audiences of the tokens that the driver gets.", Value: func(d *storagev1.CSIDriver) any { return audiencesText(d) }},
			{Name: "RequiresRepublish", Type: "boolean", Description: "Whether volumes are published again now and then.", Value: func(d *storagev1.CSIDriver) any { return boolean(d.Spec.RequiresRepublish) }},
			{Name: "Modes", Description: "Life cycles of volumes that the driver has.", Value: func(d *storagev1.CSIDriver) any { return modesText(d) }},
			resource.Age[*storagev1.CSIDriver](),
		},
	}
}

func audiencesText(d *storagev1.CSIDriver) string {
	var list []string
	for _, r := range d.Spec.TokenRequests {
		list = append(list, r.Audience)
	}
	return orUnset(strings.Join(list, ","))
}

func modesText(d *storagev1.CSIDriver) string {
	var list []string
	for _, mode := range d.Spec.VolumeLifecycleModes {
		list = append(list, string(mode))
	}
	return orUnset(strings.Join(list, ","))
}

func orUnset(text string) string {
	if text == "" {
		return "<unset>"
	}
	return text
}

func defaultDriver(d *storagev1.CSIDriver) {
	s := &d.Spec
	for _, b := range []struct {
		field **bool
		value bool
	}{{&s.AttachRequired, true}, {&s.PodInfoOnMount, false}, {&s.StorageCapacity, false}, {&s.RequiresRepublish, false}, {&s.SELinuxMount, false}} {
		if *b.field == nil {
			*b.field = ptr.To(b.value)
		}
	}
	if s.FSGroupPolicy == nil {
		s.FSGroupPolicy = ptr.To(storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	}
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
}

func validateDriver(d *storagev1.CSIDriver) field.ErrorList {
	errs := validateDriverName(d.Name, field.NewPath("metadata", "name"))
	errs = append(errs, rules.OneOfPointer(d.Spec.FSGroupPolicy, spec.Child("fsGroupPolicy"),
		storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	for i, mode := range d.Spec.VolumeLifecycleModes {
		errs = append(errs, rules.OneOf(mode, spec.Child("volumeLifecycleModes").Index(i), storagev1.VolumeLifecycleEphemeral, storagev1.VolumeLifecyclePersistent)...)
	}
	const shortest = 600
	audiences := sets.New[string]()
	for i, r := range d.Spec.TokenRequests {
		path := spec.Child("tokenRequests").Index(i)
		if audiences.Has(r.Audience) {
			errs = append(errs, field.Duplicate(path.Child("audience"), r.Audience))
		}
		audiences.Insert(r.Audience)
		if r.ExpirationSeconds != nil && *r.ExpirationSeconds < shortest {
			errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *r.ExpirationSeconds, "may not specify a duration less than 10 minutes"))
		}
	}
	return errs
}

func csiNode() *resource.Kind[*storagev1.CSINode] {
	return &resource.Kind[*storagev1.CSINode]{
		Resource:    "csinodes",
		ClusterWide: true,
		New:         func() *storagev1.CSINode { return &storagev1.CSINode{} },
		NewList:     func() runtime.Object { return &storagev1.CSINodeList{} },
		// The status of a CSINode is alpha in Kubernetes 1.37, and not served.
		PrepareCreate: func(_ context.Context, n *storagev1.CSINode) { n.Status = storagev1.CSINodeStatus{} },
		PrepareUpdate: func(_ context.Context, n, _ *storagev1.CSINode) { n.Status = storagev1.CSINodeStatus{} },
		Validate:      validateCSINode,
		ValidateUpdate: func(n, old *storagev1.CSINode) field.ErrorList {
			errs := validateCSINode(n)
			before := map[string]storagev1.CSINodeDriver{}
			for _, d := range old.Spec.Drivers {
				before[d.Name] = d
			}
			for i, d := range n.Spec.Drivers {
				had, ok := before[d.Name]
				had.Allocatable = d.Allocatable
				if ok && !equality.Semantic.DeepEqual(d, had) {
					errs = append(errs, field.Invalid(spec.Child("drivers").Index(i), d, "field is immutable"))
				}
			}
			return errs
		},
		Columns: []resource.Column[*storagev1.CSINode]{
			{Name: "Drivers", Type: "integer", Description: "Number of drivers on the node.", Value: func(n *storagev1.CSINode) any { return int64(len(n.Spec.Drivers)) }},
			resource.Age[*storagev1.CSINode](),
		},
	}
}

func validateCSINode(n *storagev1.CSINode) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i, d := range n.Spec.Drivers {
		path := spec.Child("drivers").Index(i)
		errs = append(errs, validateDriverName(d.Name, path.Child("name"))...)
		errs = append(errs, rules.Required(d.NodeID, path.Child("nodeID"))...)
		if names.Has(d.Name) {
			errs = append(errs, field.Duplicate(path.Child("name"), d.Name))
		}
		names.Insert(d.Name)
		keys := sets.New[string]()
		for _, key := range d.TopologyKeys {
			errs = append(errs, rules.Qualified(key, path.Child("topologyKeys"))...)
			if keys.Has(key) {
				errs = append(errs, field.Duplicate(path.Child("topologyKeys"), key))
			}
			keys.Insert(key)
		}
		if d.Allocatable != nil {
			errs = append(errs, rules.NotNegativePointer(d.Allocatable.Count, path.Child("allocatable", "count"))...)
		}
	}
	return errs
}

func csiStorageCapacity() *resource.Kind[*storagev1.CSIStorageCapacity] {
	return &resource.Kind[*storagev1.CSIStorageCapacity]{
		Resource: "csistoragecapacities",
		New:      func() *storagev1.CSIStorageCapacity { return &storagev1.CSIStorageCapacity{} },
		NewList:  func() runtime.Object { return &storagev1.CSIStorageCapacityList{} },
		Validate: validateCapacity,
		ValidateUpdate: func(c, old *storagev1.CSIStorageCapacity) field.ErrorList {
			errs := rules.Unchanged(c.NodeTopology, old.NodeTopology, field.NewPath("nodeTopology"))
			return append(errs, rules.Unchanged(c.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
		},
		Columns: []resource.Column[*storagev1.CSIStorageCapacity]{
			{Name: "StorageClassName", Description: "The storage class.", Value: func(c *storagev1.CSIStorageCapacity) any { return c.StorageClassName }},
			{Name: "Capacity", Description: "What is left.", Value: func(c *storagev1.CSIStorageCapacity) any {
				if c.Capacity == nil {
					return "<unset>"
				}
				return c.Capacity.String()
			}},
			resource.Age[*storagev1.CSIStorageCapacity](),
		},
	}
}

func validateCapacity(c *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := rules.Subdomain(c.StorageClassName, field.NewPath("storageClassName"))
	errs = append(errs, rules.Selector(c.NodeTopology, field.NewPath("nodeTopology"))...)
	for name, q := range map[string]*apiresource.Quantity{"capacity": c.Capacity, "maximumVolumeSize": c.MaximumVolumeSize} {
		if q != nil && q.Sign() < 0 {
			errs = append(errs, field.Invalid(field.NewPath(name), q.String(), "must be greater than or equal to 0"))
		}
	}
	return errs
}

func volumeAttachment() *resource.Kind[*storagev1.VolumeAttachment] {
	validate := func(a *storagev1.VolumeAttachment) field.ErrorList {
		errs := validateDriverName(a.Spec.Attacher, spec.Child("attacher"))
		errs = append(errs, rules.Subdomain(a.Spec.NodeName, spec.Child("nodeName"))...)
		source := spec.Child("source")
		switch s := a.Spec.Source; {
		case s.PersistentVolumeName == nil && s.InlineVolumeSpec == nil:
			errs = append(errs, field.Required(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
		case s.PersistentVolumeName != nil && s.InlineVolumeSpec != nil:
			errs = append(errs, field.Forbidden(source, "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
		case s.PersistentVolumeName != nil:
			errs = append(errs, rules.Subdomain(*s.PersistentVolumeName, source.Child("persistentVolumeName"))...)
		}
		return errs
	}
	return &resource.Kind[*storagev1.VolumeAttachment]{
		Resource:    "volumeattachments",
		ClusterWide: true,
		HasStatus:   true,
		New:         func() *storagev1.VolumeAttachment { return &storagev1.VolumeAttachment{} },
		NewList:     func() runtime.Object { return &storagev1.VolumeAttachmentList{} },
		Default: func(a *storagev1.VolumeAttachment) {
			if s := a.Spec.Source.InlineVolumeSpec; s != nil && s.VolumeMode == nil {
				s.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
			}
		},
		Validate: validate,
		ValidateUpdate: func(a, old *storagev1.VolumeAttachment) field.ErrorList {
			return append(validate(a), rules.Unchanged(a.Spec, old.Spec, spec)...)
		},
		Columns: []resource.Column[*storagev1.VolumeAttachment]{
			{Name: "Attacher", Description: "The driver.", Value: func(a *storagev1.VolumeAttachment) any { return a.Spec.Attacher }},
			{Name: "PV", Description: "The volume.", Value: func(a *storagev1.VolumeAttachment) any { return ptr.Deref(a.Spec.Source.PersistentVolumeName, "") }},
			{Name: "Node", Description: "The node.", Value: func(a *storagev1.VolumeAttachment) any { return a.Spec.NodeName }},
			{Name: "Attached", Type: "boolean", Description: "Whether the volume is attached.", Value: func(a *storagev1.VolumeAttachment) any { return a.Status.Attached }},
			resource.Age[*storagev1.VolumeAttachment](),
		},
	}
}
