package lifecycle

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
)

// In-place resize (KEP-1287): the spec is the wish; what the node granted is in Memory.Allocated; what the runtime enforces is observed.
// A running container is changed as long as the last two differ.

// granted is what the node granted to a container.
func (d *decider) granted(c *v1.Container) v1.ResourceRequirements {
	if r, ok := d.mem.Allocated[c.Name]; ok {
		return r
	}
	return c.Resources
}

// differs names the resources of a running container that are not as granted. Requests of memory are not enforced by anything.
func (d *decider) differs(c *v1.Container, last *Container) []v1.ResourceName {
	if last == nil || last.State != Running || last.Resources == nil {
		return nil
	}
	want, have := d.granted(c), *last.Resources
	var out []v1.ResourceName
	if want.Requests.Cpu().Cmp(*have.Requests.Cpu()) != 0 || want.Limits.Cpu().Cmp(*have.Limits.Cpu()) != 0 {
		out = append(out, v1.ResourceCPU)
	}
	if want.Limits.Memory().Cmp(*have.Limits.Memory()) != 0 {
		out = append(out, v1.ResourceMemory)
	}
	return out
}

// resize changes a running container, by a restart if its resizePolicy wants that for one of the resources.
func (d *decider) resize(c *v1.Container, last *Container) {
	names := d.differs(c, last)
	if len(names) == 0 || d.Busy.Start == c.Name {
		return
	}
	for _, name := range names {
		for _, p := range c.ResizePolicy {
			if p.ResourceName == name && p.RestartPolicy == v1.RestartContainer {
				d.stop(last, d.grace(), fmt.Sprintf("Container %s resize requires restart", c.Name))
				return
			}
		}
	}
	if !d.Busy.Updates[last.ID] {
		d.act(Action{Kind: UpdateContainer, ID: last.ID, Container: c.Name})
	}
}

// resizing is the condition that is there as long as a granted resize is not in force.
func (d *decider) resizing() *v1.PodCondition {
	for _, list := range [][]v1.Container{d.pod.Spec.InitContainers, d.pod.Spec.Containers} {
		for i := range list {
			if len(d.differs(&list[i], d.Observed.latest(list[i].Name))) > 0 {
				c := isTrue(v1.PodResizeInProgress)
				if d.mem.ResizeError != "" {
					c.Reason, c.Message = v1.PodReasonError, d.mem.ResizeError
				}
				return &c
			}
		}
	}
	return nil
}
