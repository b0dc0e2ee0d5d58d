package node

import (
	"os"
	goruntime "runtime"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	v1 "k8s.io/api/core/v1"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// machine is what the agent found on the machine at its start.
type machine struct {
	cpus                          int
	memory, disk                  int64
	kernel, osImage               string
	machineID, systemUUID, bootID string
	resolv                        translate.Resolv
	// hugepages are the bytes in huge pages that are set aside, by the size of a page in bytes.
	hugepages map[int64]int64
}

func readResolv() translate.Resolv {
	data, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return translate.Resolv{}
	}
	return translate.ParseResolv(string(data))
}

// capacity is what the machine has, where the configuration doesn't say otherwise.
func (n *Node) capacity() v1.ResourceList {
	list := v1.ResourceList{
		v1.ResourceCPU:              *resource.NewQuantity(int64(n.machine.cpus), resource.DecimalSI),
		v1.ResourceMemory:           *resource.NewQuantity(n.machine.memory, resource.BinarySI),
		v1.ResourceEphemeralStorage: *resource.NewQuantity(n.machine.disk, resource.BinarySI),
		v1.ResourcePods:             *resource.NewQuantity(int64(n.cfg.MaxPods), resource.DecimalSI),
	}
	for size, bytes := range n.machine.hugepages {
		list[hugepages(size)] = *resource.NewQuantity(bytes, resource.BinarySI)
	}
	for name, q := range n.cfg.Capacity {
		list[name] = q
	}
	return list
}

// allocatable is what pods may ask for: the capacity without what is reserved, and without what must stay free, for a pod that got at that would
// be evicted at once.
func (n *Node) allocatable(capacity v1.ResourceList) v1.ResourceList {
	list := capacity.DeepCopy()
	for name, reserved := range n.cfg.Reserved {
		takeOff(list, name, reserved)
	}
	for name, q := range capacity {
		if strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) {
			takeOff(list, v1.ResourceMemory, q) // it is memory too, but for nothing else
		}
	}
	if n.cfg.MemoryThreshold > 0 {
		takeOff(list, v1.ResourceMemory, *resource.NewQuantity(n.cfg.MemoryThreshold, resource.BinarySI))
	}
	if n.cfg.DiskThreshold > 0 {
		takeOff(list, v1.ResourceEphemeralStorage, *resource.NewQuantity(n.cfg.DiskThreshold, resource.BinarySI))
	}
	return list
}

// hugepages is the resource that huge pages of a size are.
func hugepages(size int64) v1.ResourceName {
	return v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String())
}

// takeOff makes a resource less, but not less than nothing.
func takeOff(list v1.ResourceList, name v1.ResourceName, amount resource.Quantity) {
	q, ok := list[name]
	if !ok {
		return
	}
	q.Sub(amount)
	if q.Sign() < 0 {
		q = resource.Quantity{Format: q.Format}
	}
	list[name] = q
}

// forPods is what all pods of the node together may use of a resource at the most: the capacity without what is reserved.
func (n *Node) forPods(name v1.ResourceName) int64 {
	capacity, reserved := n.view.Capacity[name], n.cfg.Reserved[name]
	return max(0, capacity.Value()-reserved.Value())
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

// osImage is the PRETTY_NAME of os-release, or the operating system's name.
func readOSImage() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return goruntime.GOOS
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return goruntime.GOOS
}
