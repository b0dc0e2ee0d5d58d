package shape

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ndftypes "k8s.io/component-helpers/nodedeclaredfeatures/types"
)

// idleShapes is how many shapes without users are remembered: a Deployment whose pods come one at a time finds its own
// again.
const idleShapes = 1024

// Table holds every shape in use, each once. It belongs to one goroutine.
type Table struct {
	Resources *Resources

	shapes    map[string]*Shape
	classes   map[string]*Class
	termIndex map[string]*Term
	idle      []*Shape

	key, part key
	sums      sums
	features  []string
	info      ndftypes.PodInfo
}

// NewTable returns a table without shapes.
func NewTable() *Table {
	return &Table{
		Resources: NewResources(),
		shapes:    map[string]*Shape{}, classes: map[string]*Class{}, termIndex: map[string]*Term{},
	}
}

// Len returns the number of shapes remembered.
func (t *Table) Len() int { return len(t.shapes) }

// Compile returns the shape of a pod and counts the caller as one more user of it, until Release.
func (t *Table) Compile(pod *v1.Pod) *Shape { return t.compile(pod, "") }

// CompilePinned is Compile for a pod that asks for one node by spec.nodeName and has not been bound yet.
func (t *Table) CompilePinned(pod *v1.Pod) *Shape { return t.compile(pod, pod.Spec.NodeName) }

func (t *Table) compile(pod *v1.Pod, nodeName string) *Shape {
	t.sum(pod, &t.sums)
	t.inferFeatures(pod)
	t.write(pod, nodeName)
	if known, ok := t.shapes[string(t.key.buf)]; ok {
		known.refs++
		return known
	}
	s := t.build(pod, nodeName)
	s.key, s.refs = string(t.key.buf), 1
	t.shapes[s.key] = s
	return s
}

func (t *Table) write(pod *v1.Pod, nodeName string) {
	k := &t.key
	k.buf = k.buf[:0]
	k.class(pod)
	k.string(nodeName)
	k.sums(&t.sums)
	k.tolerations(pod.Spec.Tolerations)
	k.labels(pod.Spec.NodeSelector)
	k.affinity(pod.Spec.Affinity)
	k.containers(pod.Spec.Containers)
	k.containers(pod.Spec.InitContainers)
	k.images(pod.Spec.Volumes)
	k.volumes(pod)
	k.strings(t.features)
	k.spread(pod.Spec.TopologySpreadConstraints)
	owner := ownerOf(pod)
	k.string(owner.APIVersion)
	k.string(owner.Kind)
	k.string(owner.Name)
}

func (t *Table) build(pod *v1.Pod, nodeName string) *Shape {
	s := &Shape{
		Class: t.class(pod), NodeName: nodeName, Scoring: t.sums.scoring, Counted: t.sums.counted,
		Requests:    append([]Request(nil), t.sums.requests...),
		Tolerations: pod.Spec.Tolerations,
		Node:        nodeSelector(&pod.Spec), Preferred: preferredNodes(&pod.Spec),
		Ports: ports(pod), Images: images(pod), Claims: claims(pod), Disks: disks(pod), Features: append([]string(nil), t.features...),
		Spread: CompileSpread(pod.Spec.TopologySpreadConstraints, pod.Labels), Owner: ownerOf(pod),
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
		s.Affinity = t.terms(pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		s.PreferredAffinity = t.weighted(pod, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		s.AntiAffinity = t.terms(pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		s.PreferredAntiAffinity = t.weighted(pod, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return s
}

func (t *Table) class(pod *v1.Pod) *Class {
	t.part.buf = t.part.buf[:0]
	t.part.class(pod)
	if known, ok := t.classes[string(t.part.buf)]; ok {
		known.refs++
		return known
	}
	class := &Class{Namespace: pod.Namespace, Labels: pod.Labels, key: string(t.part.buf), refs: 1}
	t.classes[class.key] = class
	return class
}

// Retain counts one more user of a shape.
func (t *Table) Retain(s *Shape) { s.refs++ }

// Release ends one use of a shape.
func (t *Table) Release(s *Shape) {
	s.refs--
	if s.refs > 0 {
		return
	}
	t.idle = append(t.idle, s)
	if len(t.idle) <= idleShapes {
		return
	}
	half := len(t.idle) / 2
	for _, old := range t.idle[:half] {
		t.forget(old)
	}
	t.idle = append([]*Shape(nil), t.idle[half:]...)
}

// forget drops a shape unless it has come into use again. A shape may stand in the idle list more than once.
func (t *Table) forget(s *Shape) {
	if s.refs > 0 || t.shapes[s.key] != s {
		return
	}
	delete(t.shapes, s.key)
	if s.Class.refs--; s.Class.refs == 0 {
		delete(t.classes, s.Class.key)
	}
	for _, term := range s.Affinity {
		t.drop(term)
	}
	for _, term := range s.AntiAffinity {
		t.drop(term)
	}
	for _, term := range s.PreferredAffinity {
		t.drop(term.Term)
	}
	for _, term := range s.PreferredAntiAffinity {
		t.drop(term.Term)
	}
}

func (t *Table) drop(term *Term) {
	if term.refs--; term.refs == 0 {
		delete(t.termIndex, term.key)
	}
}

func ownerOf(pod *v1.Pod) Owner {
	if c := metav1.GetControllerOfNoCopy(pod); c != nil {
		return Owner{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name}
	}
	return Owner{}
}

// ports lists the host ports of containers and sidecars: an ordinary init container is gone before the others start.
func ports(pod *v1.Pod) []Port {
	var out []Port
	add := func(c *v1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			port := Port{Protocol: p.Protocol, Number: p.HostPort, HostIP: p.HostIP}
			if port.Protocol == "" {
				port.Protocol = v1.ProtocolTCP
			}
			if port.HostIP == "" {
				port.HostIP = AnyAddress
			}
			out = append(out, port)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

// AnyAddress is the host address that stands for all addresses of the node.
const AnyAddress = "0.0.0.0"

// Conflicts reports whether two ports cannot be taken on the same node.
func (p Port) Conflicts(q Port) bool {
	return p.Protocol == q.Protocol && p.Number == q.Number &&
		(p.HostIP == q.HostIP || p.HostIP == AnyAddress || q.HostIP == AnyAddress)
}

func images(pod *v1.Pod) []string {
	var out []string
	for i := range pod.Spec.InitContainers {
		out = append(out, ImageName(pod.Spec.InitContainers[i].Image))
	}
	for i := range pod.Spec.Containers {
		out = append(out, ImageName(pod.Spec.Containers[i].Image))
	}
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			out = append(out, ImageName(image.Reference))
		}
	}
	return out
}

// ImageName adds the tag ":latest" to a name that has neither a tag nor a digest.
func ImageName(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}
