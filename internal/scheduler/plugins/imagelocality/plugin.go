// Package imagelocality is the plugin ImageLocality: a node is better if it has the pod's images already.
//
// An image counts with its size times the part of all nodes that have it: one that only few nodes have must not draw all
// pods to those.
package imagelocality

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// Name is the plugin's name in configurations.
const Name = "ImageLocality"

// Less than low counts for nothing, more than high times the number of images counts for no more.
const (
	low  = 23 << 20
	high = 1000 << 20
)

// Plugin scores by images.
type Plugin struct {
	// sums is working space: the bytes found on each node. It is all zeros between uses.
	sums []int64
}

// Name implements plugin.Plugin.
func (*Plugin) Name() string { return Name }

// NewScore implements plugin.ScorePlugin.
func (p *Plugin) NewScore(l *ledger.Ledger, s *shape.Shape) plugin.Score {
	if len(s.Images) == 0 {
		return nil
	}
	rated := &score{plugin: p, ledger: l, images: s.Images, high: high * int64(len(s.Images))}
	rated.look()
	return rated
}

type score struct {
	plugin *Plugin
	ledger *ledger.Ledger
	images []string
	high   int64

	// found are the images that some node has, and what each is worth on a node that has it.
	found    []*ledger.Image
	worth    []int64
	revision uint64
	nodes    int
}

// look finds out which images there are and what they are worth, and reports whether anything has changed.
func (s *score) look() (changed bool) {
	s.revision, s.nodes = s.ledger.ImageRevision(), s.ledger.Nodes()
	at := 0
	for _, name := range s.images {
		image := s.ledger.Image(name)
		if image == nil {
			continue
		}
		worth := int64(float64(image.Size) * (float64(len(image.Nodes)) / float64(s.nodes)))
		if at == len(s.found) {
			s.found, s.worth, changed = append(s.found, nil), append(s.worth, 0), true
		}
		changed = changed || s.found[at] != image || s.worth[at] != worth
		s.found[at], s.worth[at] = image, worth
		at++
	}
	changed = changed || at != len(s.found)
	s.found, s.worth = s.found[:at], s.worth[:at]
	return changed
}

// Stale implements plugin.Staler: what an image is worth changes with every node that gets it.
func (s *score) Stale() bool {
	if s.revision == s.ledger.ImageRevision() && s.nodes == s.ledger.Nodes() {
		return false
	}
	return s.look()
}

func (s *score) Node(slot int32) int64 {
	var sum int64
	for i, image := range s.found {
		if _, has := image.Nodes[slot]; has {
			sum += s.worth[i]
		}
	}
	return s.rate(sum)
}

// rate brings bytes to 0 to 100.
func (s *score) rate(sum int64) int64 {
	return plugin.MaxScore * (min(max(sum, low), s.high) - low) / (s.high - low)
}

func (s *score) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	for len(s.plugin.sums) < len(out) {
		s.plugin.sums = append(s.plugin.sums, 0)
	}
	sums := s.plugin.sums
	for i, image := range s.found {
		for slot := range image.Nodes {
			sums[slot] += s.worth[i]
		}
	}
	for _, image := range s.found {
		for slot := range image.Nodes {
			if sums[slot] > 0 && nodes.Has(slot) {
				out[slot] += weight * s.rate(sums[slot])
			}
			sums[slot] = 0
		}
	}
}

func (s *score) Normalization() plugin.Normalization { return plugin.AsIs }
