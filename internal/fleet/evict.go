package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/life"
)

const (
	// evictionThreshold is how much memory a node keeps free: it is short of it when there is less.
	evictionThreshold = 100 << 20
	// pressureLasts is how long a node says that it is short of memory after it was, so that pods do not come back at once.
	pressureLasts = 5 * time.Minute
)

// reportedFaults are those that are asked for, and the pressure that pods bring about.
func (n *node) reportedFaults() []v1alpha1.Fault {
	if !n.pressed.IsZero() && !n.has(v1alpha1.FaultMemoryPressure) {
		return append(slices.Clone(n.faults), v1alpha1.FaultMemoryPressure)
	}
	return n.faults
}

// candidate is a pod by what it uses of memory.
type candidate struct {
	pod  *pod
	uses []life.ContainerUsage
	over float64 // above its requests
}

// relieve evicts one pod when the node is short of memory: the one of the lowest priority, and of these the one that is most above its request. Pods that use no more
// than they requested stay, but those without any request do not when the shortage is one that was asked for.
func (f *Fleet) relieve(n *node, now time.Time) {
	asked := n.has(v1alpha1.FaultMemoryPressure)
	used, own := 0.0, false
	for _, p := range n.pods {
		own = own || p.life.OwnMemory()
	}
	if !own && !asked && n.pressed.IsZero() {
		return // requests fit into a node
	}
	var candidates []candidate
	for _, p := range n.pods {
		c := candidate{pod: p, uses: p.life.Usage(now)}
		for _, u := range c.uses {
			used += u.Memory
			c.over += u.Memory - u.Requested
		}
		if !p.life.Ended() && (c.over > 0 || asked && p.life.API().Status.QOSClass == corev1.PodQOSBestEffort) {
			candidates = append(candidates, c)
		}
	}
	capacity := n.api.Status.Capacity[corev1.ResourceMemory]
	available := capacity.AsApproximateFloat64() - used
	short := available < evictionThreshold
	f.press(n, short, now)
	if len(candidates) == 0 || !short && !asked {
		return
	}
	worst := slices.MinFunc(candidates, compareCandidates)
	worst.pod.life.Evict(now, evictionMessage(worst, available))
	f.step(worst.pod, now)
}

// press notes whether the node is short of memory.
func (f *Fleet) press(n *node, short bool, now time.Time) {
	was := n.pressed
	switch {
	case short:
		n.pressed = now
	case now.Sub(n.pressed) >= pressureLasts:
		n.pressed = time.Time{}
	}
	if was.IsZero() != n.pressed.IsZero() {
		f.writes.nodes.Add(n.name)
	}
}

func compareCandidates(a, b candidate) int {
	x, y := a.pod.life.API(), b.pod.life.API()
	return cmp.Or(cmp.Compare(priority(x), priority(y)), cmp.Compare(b.over, a.over), cmp.Compare(x.UID, y.UID))
}

func priority(p *corev1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

// evictionMessage says what the kubelet says.
func evictionMessage(c candidate, available float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: memory. Threshold quantity: %s, available: %s. ",
		resource.NewQuantity(evictionThreshold, resource.BinarySI), kibibytes(available))
	for _, u := range c.uses {
		if u.Memory > u.Requested {
			fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of memory. ",
				u.Name, kibibytes(u.Memory), resource.NewQuantity(int64(u.Requested), resource.BinarySI))
		}
	}
	return b.String()
}

func kibibytes(bytes float64) string { return fmt.Sprintf("%dKi", int64(bytes)/1024) }
