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
	for name, q := range n.cfg.Capacity {
		list[name] = q
	}
	return list
}

// allocatable is the capacity without what is reserved.
func (n *Node) allocatable(capacity v1.ResourceList) v1.ResourceList {
	list := capacity.DeepCopy()
	for name, reserved := range n.cfg.Reserved {
		if q, ok := list[name]; ok {
			q.Sub(reserved)
			if q.Sign() < 0 {
				q = resource.Quantity{Format: q.Format}
			}
			list[name] = q
		}
	}
	return list
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
