package embedded

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// capabilityNames are the kernel's capabilities, by number.
var capabilityNames = strings.Fields(`CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID CAP_SETPCAP
	CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW CAP_IPC_LOCK CAP_IPC_OWNER CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT
	CAP_SYS_PTRACE CAP_SYS_PACCT CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD CAP_LEASE CAP_AUDIT_WRITE
	CAP_AUDIT_CONTROL CAP_SETFCAP CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF CAP_CHECKPOINT_RESTORE`)

// defaultCapabilities are what a container has that asks for nothing, as with other runtimes.
var defaultCapabilities = strings.Fields(`CAP_AUDIT_WRITE CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_FSETID CAP_KILL CAP_MKNOD CAP_NET_BIND_SERVICE CAP_NET_RAW
	CAP_SETFCAP CAP_SETGID CAP_SETPCAP CAP_SETUID CAP_SYS_CHROOT`)

// boundingSet reads which capabilities this process can give at all.
func boundingSet() ([]string, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		digits, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("/proc/self/status: %w", err)
		}
		var names []string
		for number, name := range capabilityNames {
			if set&(1<<number) != 0 {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, nil
	}
	return nil, fmt.Errorf("/proc/self/status has no CapBnd")
}

// capabilities computes what a container's process holds. "all" means all that can be given here; a capability asked for by name that
// cannot be given is an error, because the container needs it.
func (m *machine) capabilities(context *cri.LinuxContainerSecurityContext) (*specs.LinuxCapabilities, error) {
	if context.GetPrivileged() {
		return &specs.LinuxCapabilities{Bounding: m.bounding, Effective: m.bounding, Permitted: m.bounding}, nil
	}
	wish := context.GetCapabilities()
	held, err := m.held(canonical(wish.GetAddCapabilities()), canonical(wish.GetDropCapabilities()))
	if err != nil {
		return nil, err
	}
	result := &specs.LinuxCapabilities{Bounding: held, Effective: held, Permitted: held}
	if ambient := canonical(wish.GetAddAmbientCapabilities()); len(ambient) > 0 {
		result.Ambient, result.Inheritable = ambient, ambient
	}
	return result, nil
}

// held gives the default capabilities with some added and some dropped. Single names win over "all", and dropping wins over adding.
func (m *machine) held(add, drop []string) ([]string, error) {
	held := map[string]bool{}
	for _, name := range defaultCapabilities {
		held[name] = slices.Contains(m.bounding, name)
	}
	if slices.Contains(drop, "CAP_ALL") {
		clear(held)
	}
	if slices.Contains(add, "CAP_ALL") {
		for _, name := range m.bounding {
			held[name] = true
		}
	}
	for _, name := range add {
		if err := m.checkCapability(name); err != nil {
			return nil, err
		}
		held[name] = true
	}
	for _, name := range append(drop, "CAP_ALL") {
		held[name] = false
	}
	var names []string
	for name, yes := range held {
		if yes {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (m *machine) checkCapability(name string) error {
	switch {
	case name == "CAP_ALL" || slices.Contains(m.bounding, name):
		return nil
	case slices.Contains(capabilityNames, name):
		return fmt.Errorf("capability %s cannot be given: this process does not have it", name)
	}
	return fmt.Errorf("capability %s is unknown", name)
}

func canonical(names []string) []string {
	result := make([]string, 0, len(names))
	for _, name := range names {
		result = append(result, "CAP_"+strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
	}
	return result
}
