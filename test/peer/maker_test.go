package peer

import (
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maker makes random objects that an API server would accept. Values are few, so that they meet each other often.
type maker struct {
	*rand.Rand
	serial int
	// easy leaves out what keeps pods from most nodes, so that preemption has several candidates.
	easy bool
	// modest tells that the pod being made is one that many nodes take, so that there is something to score.
	modest bool
	// ported tells that the pod being made has a host port: two equal ones in a pod are refused by the API server.
	ported bool
}

func newMaker(seed uint64) *maker { return &maker{Rand: rand.New(rand.NewPCG(seed, 0x5eed))} }

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func (m *maker) word(kind string, n int) string { return fmt.Sprintf("%s%d", kind, m.IntN(n)) }

func pick[T any](m *maker, list ...T) T { return list[m.IntN(len(list))] }

func amount(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

func milli(n int) resource.Quantity { return *resource.NewMilliQuantity(int64(n), resource.DecimalSI) }

const gpu = "example.com/gpu"

func (m *maker) node(name string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if m.chance(97) {
		n.Labels[v1.LabelHostname] = name
	}
	if m.chance(85) {
		n.Labels[v1.LabelTopologyZone] = m.word("zone", 3)
	}
	if m.chance(40) {
		n.Labels[v1.LabelTopologyRegion] = m.word("region", 2)
	}
	if m.chance(60) {
		n.Labels["disk"] = m.word("disk", 3)
	}
	if m.chance(50) {
		n.Labels["cores"] = fmt.Sprint(m.IntN(20))
	}
	m.taints(n)
	m.declare(n)
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU: milli(1000 * (2 + m.IntN(7))), v1.ResourceMemory: amount(int64(4+m.IntN(16)) << 30),
		v1.ResourcePods: amount(int64(4 + m.IntN(12))), v1.ResourceEphemeralStorage: amount(int64(10+m.IntN(20)) << 30),
	}
	if m.chance(50) {
		n.Status.Allocatable[gpu] = amount(int64(m.IntN(4)))
	}
	if m.chance(30) {
		n.Status.Allocatable["hugepages-2Mi"] = amount(int64(m.IntN(4)) << 21)
	}
	if m.chance(3) {
		delete(n.Status.Allocatable, v1.ResourceMemory)
	}
	for i := range 4 {
		if m.chance(40) {
			n.Status.Images = append(n.Status.Images, v1.ContainerImage{
				Names:     []string{fmt.Sprintf("image%d:latest", i), fmt.Sprintf("example.com/image%d:1", i)},
				SizeBytes: int64(50+i*300+pick(m, 0, 0, 0, 7)) << 20,
			})
		}
	}
	return n
}

func (m *maker) taints(n *v1.Node) {
	effects := []v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule, v1.TaintEffectPreferNoSchedule}
	if m.easy {
		effects = effects[2:]
	}
	for i := range m.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{
			Key: fmt.Sprintf("taint%d", (i+m.IntN(2))%3), Value: m.word("v", 2), Effect: pick(m, effects...),
		})
	}
	n.Spec.Unschedulable = m.chance(6)
	if n.Spec.Unschedulable && m.chance(70) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
	}
}

// pod makes a pod without a node.
func (m *maker) pod() *v1.Pod {
	m.serial++
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("pod%d", m.serial), UID: types.UID(fmt.Sprintf("uid%d", m.serial)), Namespace: m.word("ns", 4),
		Labels: map[string]string{"app": m.word("app", 4), "tier": m.word("tier", 2)},
	}}
	if m.chance(5) {
		p.Labels = nil
	}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	priority := int32(pick(m, 0, 0, 0, -5, 10, 100, 1000))
	p.Spec.Priority = &priority
	m.modest = m.chance(68)
	m.volumes(p)
	m.features(p)
	m.containers(p)
	m.tolerations(p)
	m.nodeAffinity(p)
	m.podAffinity(p)
	for range max(0, m.IntN(6)-3) {
		m.addSpread(p)
	}
	if m.chance(25) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: m.word("rs", 3), Controller: &yes}}
	}
	return p
}

// running gives a pod a node, and a time at which it started that no other pod has.
func (m *maker) running(p *v1.Pod, node string) *v1.Pod {
	p = p.DeepCopy()
	p.Spec.NodeName = node
	at := metav1.Unix(1767225600-int64(m.IntN(5000))*10000-int64(m.serial), 0)
	p.Status.StartTime = &at
	p.Status.Phase = v1.PodRunning
	return p
}

func (m *maker) containers(p *v1.Pod) {
	m.ported = false
	for i := range 1 + m.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, m.container(fmt.Sprintf("c%d", i)))
	}
	always := v1.ContainerRestartPolicyAlways
	for i := range max(0, m.IntN(6)-3) {
		c := m.container(fmt.Sprintf("i%d", i))
		if m.chance(40) {
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if m.chance(8) {
		p.Spec.Overhead = v1.ResourceList{v1.ResourceCPU: milli(50), v1.ResourceMemory: amount(64 << 20)}
	}
	if m.chance(8) {
		p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: milli(100 * (1 + m.IntN(20)))}}
		if m.chance(50) {
			p.Spec.Resources.Requests[v1.ResourceMemory] = amount(int64(1+m.IntN(20)) << 27)
		}
	}
	if m.chance(8) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "image", VolumeSource: v1.VolumeSource{
			Image: &v1.ImageVolumeSource{Reference: m.word("image", 5)},
		}})
	}
}

func (m *maker) container(name string) v1.Container {
	c := v1.Container{Name: name, Image: pick(m, "", "example.com/") + m.word("image", 5) + pick(m, "", ":1", ":latest"),
		Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}
	requests := c.Resources.Requests
	if m.modest {
		requests[v1.ResourceCPU] = milli(50 * m.IntN(5))
		requests[v1.ResourceMemory] = amount(int64(m.IntN(5)) << 26)
		m.port(&c)
		return c
	}
	if m.chance(75) {
		requests[v1.ResourceCPU] = milli(100 * m.IntN(15))
	}
	if m.chance(70) {
		requests[v1.ResourceMemory] = amount(int64(m.IntN(20)) << 27)
	}
	if m.chance(10) {
		requests[v1.ResourceEphemeralStorage] = amount(int64(m.IntN(12)) << 30)
	}
	if m.chance(8) {
		requests[gpu] = amount(int64(m.IntN(4)))
	}
	if m.chance(3) {
		requests["hugepages-2Mi"] = amount(int64(1+m.IntN(3)) << 21)
	}
	m.port(&c)
	return c
}

func (m *maker) port(c *v1.Container) {
	if m.chance(14) && !m.ported {
		m.ported = true
		c.Ports = append(c.Ports, v1.ContainerPort{
			ContainerPort: 80, HostPort: int32(8000 + m.IntN(2)), HostIP: pick(m, "", "0.0.0.0", "10.0.0.1", "10.0.0.2"),
			Protocol: pick(m, v1.ProtocolTCP, v1.ProtocolTCP, v1.ProtocolUDP),
		})
	}
}

func (m *maker) tolerations(p *v1.Pod) {
	add := func(t v1.Toleration) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
	if m.modest {
		add(v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule})
		add(v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
	}
	if m.chance(15) {
		add(v1.Toleration{Operator: v1.TolerationOpExists, Effect: pick(m, "", v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule)})
	}
	for range m.IntN(4) {
		t := v1.Toleration{
			Key: m.word("taint", 3), Operator: v1.TolerationOpExists,
			Effect: pick(m, "", v1.TaintEffectNoSchedule, v1.TaintEffectNoExecute, v1.TaintEffectPreferNoSchedule),
		}
		if m.chance(40) {
			t.Operator, t.Value = pick(m, "", v1.TolerationOpEqual), m.word("v", 2)
		}
		add(t)
	}
	if m.chance(10) {
		add(v1.Toleration{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists})
	}
}
