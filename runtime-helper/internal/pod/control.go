package pod

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// signal sends a signal to the container's first process, or to everything in its cgroup.
func (p *Pod) signal(request *protocol.SignalRequest) error {
	c, err := p.running(request.ID)
	if err != nil {
		return err
	}
	number := unix.Signal(request.Signal)
	if request.All && number != unix.SIGKILL {
		return signalAll(c.runtime, number)
	}
	if err := c.runtime.Signal(number); err != nil && !isGone(err) {
		return fmt.Errorf("signal %s to container %s: %w", number, request.ID, err)
	}
	return nil
}

func signalAll(runtime *libcontainer.Container, number unix.Signal) error {
	pids, err := runtime.Processes()
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, number); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// isGone tells an error that says no more than that the process has ended meanwhile; its end is about to be told.
func isGone(err error) bool {
	return errors.Is(err, libcontainer.ErrNotRunning) || errors.Is(err, os.ErrProcessDone) || errors.Is(err, unix.ESRCH)
}

// update changes the limits of a running container. It goes by way of the spec, so that a value has the same meaning as at the start.
func (p *Pod) update(request *protocol.UpdateRequest) error {
	c, err := p.running(request.ID)
	if err != nil {
		return err
	}
	var resources specs.LinuxResources
	if err := json.Unmarshal(request.Resources, &resources); err != nil {
		return fmt.Errorf("resources of container %s: %w", request.ID, err)
	}
	config := c.runtime.Config()
	merged, err := mergeResources(config.Cgroups, &resources)
	if err != nil {
		return fmt.Errorf("resources of container %s: %w", request.ID, err)
	}
	// Device rules do not change; without this the device cgroup would be written anew and running processes could lose access for a moment.
	merged.SkipDevices = true
	cgroup := *config.Cgroups
	cgroup.Resources = merged
	config.Cgroups = &cgroup
	err = c.runtime.Set(config)
	merged.SkipDevices = false // libcontainer keeps the pointer, and starts no exec session with it set
	if err != nil {
		return fmt.Errorf("resources of container %s: %w", request.ID, err)
	}
	return nil
}

// mergeResources lays what is given over what a cgroup has.
func mergeResources(cgroup *cgroups.Cgroup, given *specs.LinuxResources) (*cgroups.Resources, error) {
	wanted, err := specconv.CreateCgroupConfig(&specconv.CreateOpts{
		Spec: &specs.Spec{Linux: &specs.Linux{CgroupsPath: cgroup.Path, Resources: given}},
	}, nil)
	if err != nil {
		return nil, err
	}
	merged, next := *cgroup.Resources, wanted.Resources
	if cpu := given.CPU; cpu != nil {
		setIf(cpu.Shares != nil, &merged.CpuShares, next.CpuShares)
		setIf(cpu.Shares != nil, &merged.CpuWeight, next.CpuWeight)
		setIf(cpu.Quota != nil, &merged.CpuQuota, next.CpuQuota)
		setIf(cpu.Period != nil, &merged.CpuPeriod, next.CpuPeriod)
		setIf(cpu.Cpus != "", &merged.CpusetCpus, next.CpusetCpus)
		setIf(cpu.Mems != "", &merged.CpusetMems, next.CpusetMems)
	}
	if memory := given.Memory; memory != nil {
		setIf(memory.Limit != nil, &merged.Memory, next.Memory)
		setIf(memory.Swap != nil, &merged.MemorySwap, next.MemorySwap)
		setIf(memory.Reservation != nil, &merged.MemoryReservation, next.MemoryReservation)
	}
	setIf(given.Pids != nil, &merged.PidsLimit, next.PidsLimit)
	merged.Unified = maps.Clone(merged.Unified)
	for name, value := range given.Unified {
		if merged.Unified == nil {
			merged.Unified = map[string]string{}
		}
		merged.Unified[name] = value
	}
	return &merged, nil
}

func setIf[T any](given bool, target *T, value T) {
	if given {
		*target = value
	}
}

// remove forgets an exited container; its files are the agent's to remove.
func (p *Pod) remove(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.containers[id]
	if c == nil {
		return nil
	}
	if c.state.Phase != protocol.Exited {
		return fmt.Errorf("container %s has not exited", id)
	}
	delete(p.containers, id)
	return nil
}

func (p *Pod) reopen(id string) error {
	c, err := p.running(id)
	if err != nil {
		return err
	}
	return c.stdio.reopen()
}

func (p *Pod) resize(request *protocol.ResizeRequest) error {
	c, err := p.running(request.ID)
	if err != nil {
		return err
	}
	return c.stdio.resize(request.Width, request.Height)
}
