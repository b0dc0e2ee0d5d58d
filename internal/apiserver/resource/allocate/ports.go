package allocate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
)

// PortRange is a range of ports, both ends included.
type PortRange struct{ First, Last int32 }

// String writes the range as flags and the store do.
func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.First, r.Last) }

func (r PortRange) size() int { return int(r.Last-r.First) + 1 }

func (r PortRange) contains(port int32) bool { return port >= r.First && port <= r.Last }

// DefaultPorts is the range of node ports in every Kubernetes cluster that was not told otherwise.
var DefaultPorts = PortRange{30000, 32767}

// rangesPrefix and portsKey are where Kubernetes keeps the bitmap of node ports.
const (
	rangesPrefix = "/ranges"
	portsKey     = rangesPrefix + "/servicenodeports"
)

// Ports hands out node ports.
type Ports struct {
	within  PortRange
	storage storage.Interface
	Destroy func()
}

// NewPorts returns the node ports of the store that options lead to.
func NewPorts(options generic.RESTOptionsGetter, within PortRange) (*Ports, error) {
	o, err := options.GetRESTOptions(corev1.Resource("rangeallocations"), &corev1.RangeAllocation{})
	if err != nil {
		return nil, err
	}
	key := func(runtime.Object) (string, error) { return portsKey, nil }
	attributes := func(runtime.Object) (labels.Set, fields.Set, error) { return nil, nil, nil }
	s, destroy, err := o.Decorator(o.StorageConfig, rangesPrefix, key,
		func() runtime.Object { return &corev1.RangeAllocation{} }, func() runtime.Object { return &rangeList{} }, attributes, nil, nil)
	return &Ports{within: within, storage: s, Destroy: destroy}, err
}

// TakenError tells that a port that was asked for cannot be had.
type TakenError struct {
	Port   int32
	Within PortRange
}

func (e *TakenError) Error() string {
	if !e.Within.contains(e.Port) {
		return fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %s", e.Within)
	}
	return "provided port is already allocated"
}

// Reserve takes all the wanted ports and n more that are free, or none. The more come in the order of the search that begins where uid says.
func (p *Ports) Reserve(ctx context.Context, uid types.UID, wanted []int32, n int, dryRun bool) ([]int32, error) {
	var more []int32
	err := p.update(ctx, dryRun, func(b *bitmap) error {
		more = nil
		for _, port := range wanted {
			if !b.take(port) {
				return &TakenError{port, p.within}
			}
		}
		size := p.within.size()
		start := int(seed(uid) % uint64(size)) //nolint:gosec // below size
		for i := 0; i < size && len(more) < n; i++ {
			if port := p.within.First + int32((start+i)%size); b.take(port) { //nolint:gosec // below size
				more = append(more, port)
			}
		}
		if len(more) < n {
			return fmt.Errorf("no port of %s is free", p.within)
		}
		return nil
	})
	return more, err
}

// Release gives ports back.
func (p *Ports) Release(ctx context.Context, ports []int32) error {
	if len(ports) == 0 {
		return nil
	}
	return p.update(ctx, false, func(b *bitmap) error {
		for _, port := range ports {
			b.release(port)
		}
		return nil
	})
}

func (p *Ports) update(ctx context.Context, dryRun bool, change func(*bitmap) error) error {
	apply := func(obj runtime.Object) (runtime.Object, error) {
		allocation := obj.(*corev1.RangeAllocation)
		b := p.bitmap(allocation)
		if err := change(b); err != nil {
			return nil, err
		}
		allocation.Range, allocation.Data = p.within.String(), b.bits
		return allocation, nil
	}
	if dryRun {
		current := &corev1.RangeAllocation{}
		if err := p.storage.Get(ctx, portsKey, storage.GetOptions{IgnoreNotFound: true}, current); err != nil {
			return err
		}
		_, err := apply(current)
		return err
	}
	return p.storage.GuaranteedUpdate(ctx, portsKey, &corev1.RangeAllocation{}, true, nil, storage.SimpleUpdate(apply), nil)
}

// bitmap reads what is stored. A range that was configured otherwise before is carried over port by port.
func (p *Ports) bitmap(stored *corev1.RangeAllocation) *bitmap {
	b := &bitmap{within: p.within, bits: make([]byte, (p.within.size()+7)/8)}
	var before PortRange
	if _, err := fmt.Sscanf(stored.Range, "%d-%d", &before.First, &before.Last); err != nil {
		return b
	}
	old := &bitmap{within: before, bits: slices.Clone(stored.Data)}
	for port := before.First; port <= before.Last; port++ {
		if old.has(port) {
			b.take(port)
		}
	}
	return b
}

// bitmap has one bit a port.
type bitmap struct {
	within PortRange
	bits   []byte
}

func (b *bitmap) has(port int32) bool {
	i := int(port - b.within.First)
	return b.within.contains(port) && i/8 < len(b.bits) && b.bits[i/8]&(1<<(i%8)) != 0
}

// take reports false when the port is taken or outside.
func (b *bitmap) take(port int32) bool {
	if !b.within.contains(port) || b.has(port) {
		return false
	}
	i := int(port - b.within.First)
	b.bits[i/8] |= 1 << (i % 8)
	return true
}

func (b *bitmap) release(port int32) {
	if b.has(port) {
		i := int(port - b.within.First)
		b.bits[i/8] &^= 1 << (i % 8)
	}
}

// rangeList is what the watch cache lists ranges into; the API has no such list.
type rangeList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []corev1.RangeAllocation
}

// DeepCopyObject implements runtime.Object.
func (l *rangeList) DeepCopyObject() runtime.Object {
	out := &rangeList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
