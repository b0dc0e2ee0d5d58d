package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bayplan/bayplan/internal/scheduler/ledger"
	"github.com/bayplan/bayplan/internal/scheduler/shape"
	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// add counts a pod of the words on a node.
func add(t testing.TB, l *ledger.Ledger, name, node string, words ...string) *ledger.Pod {
	pod := &ledger.Pod{UID: types.UID(name), Name: name, Shape: l.Shapes.Compile(transcript.Pod(t, name, words...))}
	l.AddPod(pod, node)
	return pod
}

// state writes all counters.
func state(l *ledger.Ledger) string {
	var lines []string
	l.Live.Each(func(slot int32) {
		var pods []string
		for _, pod := range l.NodePods(slot) {
			pods = append(pods, string(pod.UID))
		}
		slices.Sort(pods)
		lines = append(lines, fmt.Sprintf("%s pods %v %d cpu %d memory %d scoring %d %d port %v", l.NodeName(slot), pods,
			l.PodCount[slot], l.Requested(shape.CPU)[slot], l.Requested(shape.Memory)[slot], l.Scoring[0][slot], l.Scoring[1][slot],
			l.PortTaken(shape.Port{Protocol: v1.ProtocolTCP, Number: 80, HostIP: shape.AnyAddress}, slot)))
	})
	l.EachGroup(func(g *ledger.Group) {
		lines = append(lines, fmt.Sprintf("group %v %v", g.Shape.Class.Labels, slices.Sorted(slices.Values(g.Slots))))
	})
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestPodsOfAnUnknownNodeCountWhenItComes(t *testing.T) {
	l := ledger.New()
	pod := add(t, l, "a", "n1", "cpu=1")
	if pod.Slot != ledger.None || l.NodeOf(pod) != "n1" {
		t.Fatalf("pod a has slot %d on node %q before the node is known", pod.Slot, l.NodeOf(pod))
	}
	l.SetNode(transcript.Node(t, "n1"))
	if l.Requested(shape.CPU)[pod.Slot] != 1000 {
		t.Errorf("the node came, but pod a does not count: %s", state(l))
	}
}

func TestNodeMadeAgainHasNoPhantomPods(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n1"))
	gone, stays := add(t, l, "gone", "n1", "cpu=1"), add(t, l, "stays", "n1", "cpu=2", "port=80")
	l.DeleteNode("n1")
	l.RemovePod(gone)
	l.SetNode(transcript.Node(t, "n2"))
	l.SetNode(transcript.Node(t, "n1"))
	slot, _ := l.Slot("n1")
	if got := l.Requested(shape.CPU)[slot]; got != 2000 || stays.Slot != slot || len(l.NodePods(slot)) != 1 {
		t.Errorf("node n1 has %d mCPU requested, want 2000 of pod stays alone:\n%s", got, state(l))
	}
	other, _ := l.Slot("n2")
	if l.PodCount[other] != 0 || l.Requested(shape.CPU)[other] != 0 {
		t.Errorf("node n2 took over the slot with pods in it:\n%s", state(l))
	}
}

func TestSetNodeTellsWhatChanged(t *testing.T) {
	l := ledger.New()
	for _, test := range []struct {
		words string
		want  ledger.Kind
	}{
		{"cpu=4", ledger.NodeAdded},
		{"cpu=4", 0},
		{"cpu=8", ledger.NodeAllocatable},
		{"cpu=8 gpu=1", ledger.NodeAllocatable},
		{"cpu=8", ledger.NodeAllocatable},
		{"cpu=8 labels=a=b", ledger.NodeLabels},
		{"cpu=8 labels=a=b taint=x:NoSchedule", ledger.NodeTaints},
		{"cpu=8 labels=a=b taint=x:NoSchedule unschedulable", ledger.NodeTaints},
		{"cpu=8 image=i:10", ledger.NodeLabels | ledger.NodeTaints | ledger.NodeImages},
		{"cpu=8 image=i:10 pods=3", ledger.NodeAllocatable},
	} {
		position := l.Position()
		if got := l.SetNode(transcript.Node(t, "n", strings.Fields(test.words)...)); got != test.want {
			t.Errorf("%s: changed %b, want %b", test.words, got, test.want)
		}
		if journalled := l.Position() != position; journalled != (test.want != 0) {
			t.Errorf("%s: journalled %v", test.words, journalled)
		}
	}
}

func TestLabelColumn(t *testing.T) {
	l := ledger.New()
	for i := range 3 {
		l.SetNode(transcript.Node(t, fmt.Sprint("n", i), fmt.Sprintf("labels=zone=z%d", i%2)))
	}
	zone := l.Label("zone")
	if zone.Value[0] != zone.Value[2] || zone.Value[0] == zone.Value[1] || zone.Name(zone.Value[1]) != "z1" {
		t.Errorf("values of zone are %v", zone.Value)
	}
	// A value that nobody has any more makes room for another one.
	for i := range 50 {
		l.SetNode(transcript.Node(t, "n1", fmt.Sprintf("labels=zone=new%d", i)))
	}
	if zone.Len() > 5 || zone.Name(zone.Value[1]) != "new49" {
		t.Errorf("%d values are kept, n1's is %q", zone.Len(), zone.Name(zone.Value[1]))
	}
	l.DeleteNode("n1")
	if zone.Value[1] != 0 {
		t.Errorf("the deleted node's value is still %d", zone.Value[1])
	}
}

func TestImages(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n0", "image=a:10", "image=b:20"))
	l.SetNode(transcript.Node(t, "n1", "image=a:10"))
	if a := l.Image("a:latest"); a == nil || len(a.Nodes) != 2 || a.Size != 10<<20 {
		t.Errorf("image a is %+v", a)
	}
	l.SetNode(transcript.Node(t, "n0", "image=a:10"))
	if l.Image("b:latest") != nil {
		t.Error("image b is kept though no node has it")
	}
	l.DeleteNode("n1")
	if a := l.Image("a:latest"); len(a.Nodes) != 1 {
		t.Errorf("image a is on %d nodes, want 1", len(a.Nodes))
	}
}

func TestJournalTellsWhenItHasForgotten(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n"))
	start := l.Position()
	pod := add(t, l, "a", "n")
	kinds := []ledger.Kind{}
	if !l.Since(start, func(c *ledger.Change) { kinds = append(kinds, c.Kind) }) || !slices.Equal(kinds, []ledger.Kind{ledger.PodAdded}) {
		t.Errorf("changes are %v, want one pod added", kinds)
	}
	for range 10000 {
		l.RemovePod(pod)
		l.AddPod(pod, "n")
	}
	if l.Since(start, func(*ledger.Change) { t.Error("a change is told though some are missing") }) {
		t.Error("the journal claims to remember 20,000 changes")
	}
}

// TestUndoEqualsRebuild adds and removes pods at will between marks, and rolls back.
func TestUndoEqualsRebuild(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := ledger.New()
		for i := range 3 {
			l.SetNode(transcript.Node(t, fmt.Sprint("n", i)))
		}
		var on []*ledger.Pod
		serial := 0
		place := func() {
			serial++
			words := []string{"cpu=" + rapid.SampledFrom([]string{"1", "2"}).Draw(r, "cpu"), "labels=app=" + rapid.SampledFrom([]string{"a", "b"}).Draw(r, "app")}
			if rapid.Bool().Draw(r, "port") {
				words = append(words, "port=80")
			}
			on = append(on, add(t, l, fmt.Sprint("p", serial), fmt.Sprint("n", rapid.IntRange(0, 2).Draw(r, "node")), words...))
		}
		for range rapid.IntRange(0, 6).Draw(r, "pods") {
			place()
		}
		before := state(l)
		outer := l.Mark()
		var inner ledger.Mark
		var half string
		steps := rapid.IntRange(1, 12).Draw(r, "steps")
		for i := range steps {
			if i == steps/2 {
				inner, half = l.Mark(), state(l)
			}
			if len(on) > 0 && rapid.Bool().Draw(r, "remove") {
				at := rapid.IntRange(0, len(on)-1).Draw(r, "which")
				l.RemovePod(on[at])
				on = slices.Delete(on, at, at+1)
			} else {
				place()
			}
		}
		l.Rollback(inner)
		if got := state(l); got != half {
			r.Fatalf("rolled back to the middle it is\n%s\nbut it was\n%s", got, half)
		}
		l.Rollback(outer)
		if got := state(l); got != before {
			r.Fatalf("rolled back it is\n%s\nbut it was\n%s", got, before)
		}
	})
}

func TestSiblings(t *testing.T) {
	l := ledger.New()
	pod := transcript.Pod(t, "p", "labels=app=web,tier=front")
	s := l.Shapes.Compile(pod)
	if !l.Siblings(s).Empty() {
		t.Errorf("nothing selects the pod, but its siblings are %v", l.Siblings(s))
	}
	l.SetService("default", "web", labels.Set{"app": "web"})
	l.SetService("default", "other", labels.Set{"app": "other"})
	l.SetService("elsewhere", "web", labels.Set{"tier": "front"})
	if got := l.Siblings(s).String(); got != "app=web" {
		t.Errorf("siblings are %q, want app=web", got)
	}
	revision := l.SelectorRevision("default")
	l.SetService("default", "web", labels.Set{"app": "web"})
	if l.SelectorRevision("default") != revision {
		t.Error("a Service that stays as it is moves the revision")
	}
	l.SetService("default", "web", nil)
	if !l.Siblings(s).Empty() || l.SelectorRevision("default") == revision {
		t.Error("the deleted Service still selects")
	}
}

func TestPodViolatesOneBudget(t *testing.T) {
	l := ledger.New()
	for _, name := range []string{"first", "second"} {
		allowed := int32(0)
		if name == "second" {
			allowed = 1
		}
		l.SetBudget(&ledger.Budget{Namespace: "default", Name: name, Allowed: allowed, Selector: labels.SelectorFromSet(labels.Set{name: "yes"})})
	}
	both := add(t, l, "both", "n1", "labels=first=yes,second=yes")
	one := add(t, l, "one", "n1", "labels=second=yes")
	more := add(t, l, "more", "n1", "labels=second=yes")
	if got := l.Violating([]*ledger.Pod{both, one, more}); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("violating are %v, want the first, which leaves the second budget alone, and the last", got)
	}
}

func TestLastNodeWithAnImageTellsItsSize(t *testing.T) {
	l := ledger.New()
	l.SetNode(transcript.Node(t, "n1", "image=app:100"))
	l.SetNode(transcript.Node(t, "n2", "image=app:200"))
	size := func() int64 { return l.Image("app:latest").Size >> 20 }
	if size() != 100 {
		t.Errorf("size is %d MiB, want that of the first node", size())
	}
	l.SetNode(transcript.Node(t, "n1", "image=app:300"))
	if size() != 100 {
		t.Errorf("size is %d MiB, want the first as long as others have the image", size())
	}
	l.DeleteNode("n1")
	l.SetNode(transcript.Node(t, "n2", "image=app:400"))
	if size() != 400 {
		t.Errorf("size is %d MiB, want what the only node says", size())
	}
}
