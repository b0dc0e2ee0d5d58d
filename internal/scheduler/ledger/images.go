package ledger

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Image is a container image that at least one node has.
type Image struct {
	// Size is what the first node that reported the image said, or the last one that has it.
	Size int64
	// Nodes are the slots of the nodes that have it.
	Nodes map[int32]struct{}

	name string
}

type imageTable struct {
	list  []*Image
	index map[string]int32
	free  []int32
	// revision moves whenever a node gets or loses an image.
	revision uint64
}

func newImageTable() imageTable { return imageTable{index: map[string]int32{}} }

// Image returns the image with a normalised name, nil if no node has it.
func (l *Ledger) Image(name string) *Image {
	if i, ok := l.images.index[name]; ok {
		return l.images.list[i]
	}
	return nil
}

// ImageRevision moves whenever a node gets or loses an image.
func (l *Ledger) ImageRevision() uint64 { return l.images.revision }

// setImages replaces the images of a node.
func (l *Ledger) setImages(slot int32, images []v1.ContainerImage) Kind {
	node := &l.nodes[slot]
	var now []int32
	resized := false
	for i := range images {
		for _, name := range images[i].Names {
			image := l.images.number(name, images[i].SizeBytes)
			if l.images.outgrown(image, slot, images[i].SizeBytes) && !slices.Contains(now, image) {
				l.images.list[image].Size, resized = images[i].SizeBytes, true
			}
			now = append(now, image)
		}
	}
	slices.Sort(now)
	now = slices.Compact(now)
	if slices.Equal(now, node.images) && !resized {
		return 0
	}
	l.images.revision++
	for _, image := range now {
		l.images.list[image].Nodes[slot] = struct{}{}
	}
	for _, image := range node.images {
		if _, kept := slices.BinarySearch(now, image); !kept {
			l.images.leave(image, slot)
		}
	}
	node.images = slices.Clip(now)
	return NodeImages
}

func (t *imageTable) number(name string, size int64) int32 {
	if image, ok := t.index[name]; ok {
		return image
	}
	entry := &Image{Size: size, Nodes: map[int32]struct{}{}, name: name}
	var image int32
	if n := len(t.free); n > 0 {
		image, t.free = t.free[n-1], t.free[:n-1]
		t.list[image] = entry
	} else {
		image = int32(len(t.list))
		t.list = append(t.list, entry)
	}
	t.index[name] = image
	return image
}

// outgrown reports whether the only node with an image now reports another size.
func (t *imageTable) outgrown(image, slot int32, size int64) bool {
	entry := t.list[image]
	_, has := entry.Nodes[slot]
	return has && len(entry.Nodes) == 1 && entry.Size != size
}

func (t *imageTable) leave(image, slot int32) {
	entry := t.list[image]
	delete(entry.Nodes, slot)
	if len(entry.Nodes) == 0 {
		delete(t.index, entry.name)
		t.list[image] = nil
		t.free = append(t.free, image)
	}
}
