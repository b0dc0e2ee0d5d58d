package noderesourcesfit

import (
	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/plugin"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
)

// exactBelow bounds the capacities for which 64-bit floating point divides exactly enough. The quotient is at most 100,
// where neighbouring numbers are 2^-46 apart, and a quotient that is not whole stays at least 1/capacity below the next
// whole number; so below 2^46 it is never rounded up to it.
const exactBelow = 1 << 46

// leastScore is LeastAllocated over CPU and memory of equal weight, which is what nearly everybody uses, in one pass.
type leastScore struct {
	*score
	cpu, memory int64
}

func least(s *score) plugin.Score {
	r := s.resources
	if len(r) != 2 || r[0].resource != shape.CPU || r[1].resource != shape.Memory || r[0].weight != r[1].weight {
		return s
	}
	return &leastScore{score: s, cpu: r[0].amount, memory: r[1].amount}
}

func (s *leastScore) Node(slot int32) int64 {
	l := s.ledger
	return leastOf(l.Scoring[shape.CPU][slot]+s.cpu, l.Allocatable(shape.CPU)[slot],
		l.Scoring[shape.Memory][slot]+s.memory, l.Allocatable(shape.Memory)[slot])
}

func (s *leastScore) Column(nodes ledger.Bitmap, weight int64, out []int64) {
	s.Block(nodes, 0, len(nodes), weight, out)
}

// Block implements plugin.BlockScore.
func (s *leastScore) Block(nodes ledger.Bitmap, from, to int, weight int64, out []int64) {
	l := s.ledger
	lo, hi := from<<6, min(to<<6, len(out))
	out = out[lo:hi]
	cpu, cpuUsed := l.Allocatable(shape.CPU)[lo:hi], l.Scoring[shape.CPU][lo:hi]
	memory, memoryUsed := l.Allocatable(shape.Memory)[lo:hi], l.Scoring[shape.Memory][lo:hi]
	for i, allCPU := range cpu {
		allMemory := memory[i]
		if allCPU <= 0 || allMemory <= 0 || allCPU|allMemory >= exactBelow {
			out[i] += weight * leastOf(cpuUsed[i]+s.cpu, allCPU, memoryUsed[i]+s.memory, allMemory)
			continue
		}
		// leastOf, written out: the compiler does not inline it.
		freeCPU := max(allCPU-cpuUsed[i]-s.cpu, 0) * plugin.MaxScore
		freeMemory := max(allMemory-memoryUsed[i]-s.memory, 0) * plugin.MaxScore
		sum := int64(float64(freeCPU)/float64(allCPU)) + int64(float64(freeMemory)/float64(allMemory))
		out[i] += weight * (sum >> 1)
	}
}

func leastOf(cpuUsed, cpu, memoryUsed, memory int64) int64 {
	if cpu == 0 || memory == 0 {
		return free(cpuUsed, cpu) + free(memoryUsed, memory)
	}
	return (free(cpuUsed, cpu) + free(memoryUsed, memory)) / 2
}

// free is the part of the capacity that is left, 0 to 100, rounded down; 0 for no capacity.
func free(used, capacity int64) int64 {
	left := capacity - used
	if left <= 0 {
		return 0
	}
	if capacity < exactBelow {
		return int64(float64(left*plugin.MaxScore) / float64(capacity))
	}
	return left * plugin.MaxScore / capacity
}
