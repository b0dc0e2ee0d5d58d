package podtopologyspread

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
)

const (
	skewed plugin.Code = iota + 1
	missingKey
)

// filter rejects nodes in domains that would have more than maxSkew pods over the emptiest one.
type filter struct{ *counts }

// most returns how many pods a domain may have before the pod comes.
func (con *constraint) most() int32 {
	least := con.least
	if con.domains < con.MinDomains {
		least = 0
	}
	return int32(min(int64(con.MaxSkew)+int64(least)-int64(con.self), math.MaxInt32))
}

func (f *filter) Node(slot int32) plugin.Code {
	for i := range f.list {
		con := &f.list[i]
		value := con.column.Value[slot]
		if value == 0 {
			return missingKey
		}
		if con.pods[value] > con.most() {
			return skewed
		}
	}
	return plugin.Pass
}

func (f *filter) Column(pass ledger.Bitmap, fail func(int32, plugin.Code)) {
	for i := range f.list {
		con := &f.list[i]
		most, values := con.most(), con.column.Value
		for i, word := range pass {
			for ; word != 0; word &= word - 1 {
				slot := int32(i<<6 + trailing(word))
				value := values[slot]
				if value != 0 && con.pods[value] <= most {
					continue
				}
				pass.Clear(slot)
				if value == 0 {
					fail(slot, missingKey)
				} else {
					fail(slot, skewed)
				}
			}
		}
	}
}

// Advise implements plugin.Advisor: which domain has too many pods. The distance is how many.
func (f *filter) Advise(slot int32) plugin.Advice {
	for i := range f.list {
		con := &f.list[i]
		value := con.column.Value[slot]
		if value == 0 {
			return plugin.Advice{Detail: "the node lacks the label " + con.TopologyKey, Distance: math.MaxInt32}
		}
		if over := con.pods[value] - con.most(); over > 0 {
			return plugin.Advice{
				Detail: fmt.Sprintf("%s %s has %d matching pods and may have %d before this one (maxSkew %d)",
					con.TopologyKey, con.column.Name(value), con.pods[value], con.most(), con.MaxSkew),
				Distance: float64(over),
			}
		}
	}
	return plugin.Advice{}
}

func (f *filter) Explain(code plugin.Code) plugin.Status {
	if code == missingKey {
		return plugin.Reject(Name, plugin.Unresolvable, ReasonMissingKey)
	}
	return plugin.Reject(Name, plugin.Unschedulable, Reason)
}

func trailing(word uint64) int { return bits.TrailingZeros64(word) }
