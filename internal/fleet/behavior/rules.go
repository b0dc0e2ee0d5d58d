// Package behavior tells what pods on simulated nodes do: how long their containers take and run, how they end, what they use and write. It follows from rules that
// select pods (v1alpha1.PodBehavior) and from the pod's own annotation:
//
//	rules ─► Compile ─► Rules ─┐
//	pod, labels of its node ───┴► For ─► Pod ─► Container(which, attempt): all that one run of a container does, drawn
//
// All draws are functions of the seed, the pod's UID and what is drawn (Chance), so nothing has to be kept to know them again.
package behavior

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

// Rules are all rules, in the order in which they are asked.
type Rules struct {
	rules []rule

	// own are the behaviors of annotations by their text, for the pods of a workload share one.
	mu  sync.Mutex
	own map[string]own
}

type rule struct {
	selector    v1alpha1.PodSelector
	pods, nodes labels.Selector
	behavior    *compiled
}

type own struct {
	behavior *compiled
	err      error
}

// maxOwn bounds how many different annotations are remembered.
const maxOwn = 1000

// Compile reads rules. The error names the rule and the field.
func Compile(objects []v1alpha1.PodBehavior) (*Rules, error) {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b v1alpha1.PodBehavior) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	out := &Rules{own: map[string]own{}}
	for i := range sorted {
		r, err := compileRule(&sorted[i].Spec)
		if err != nil {
			return nil, fmt.Errorf("PodBehavior %q: spec.%w", sorted[i].Name, err)
		}
		out.rules = append(out.rules, r)
	}
	return out, nil
}

func compileRule(spec *v1alpha1.PodBehaviorSpec) (rule, error) {
	r := rule{selector: spec.Selector, pods: labels.Everything(), nodes: labels.Everything()}
	var err error
	if spec.Selector.Pods != nil {
		if r.pods, err = metav1.LabelSelectorAsSelector(spec.Selector.Pods); err != nil {
			return r, fmt.Errorf("selector.pods: %w", err)
		}
	}
	if spec.Selector.Nodes != nil {
		if r.nodes, err = metav1.LabelSelectorAsSelector(spec.Selector.Nodes); err != nil {
			return r, fmt.Errorf("selector.nodes: %w", err)
		}
	}
	r.behavior, err = compile("behavior.", &spec.Behavior)
	return r, err
}

func (r *rule) selects(pod *corev1.Pod, node labels.Set) bool {
	s := &r.selector
	if len(s.Owners) > 0 {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || !slices.Contains(s.Owners, owner.Kind) {
			return false
		}
	}
	return anyMatches(s.Namespaces, pod.Namespace) && anyMatches(s.Names, pod.Name) && r.pods.Matches(labels.Set(pod.Labels)) && r.nodes.Matches(node)
}

// For is what a pod does that runs on a node with these labels. An error is about the pod's own annotation: the pod then does what rules say.
func (r *Rules) For(pod *corev1.Pod, node labels.Set, seed uint64) (*Pod, error) {
	out := &Pod{chance: NewChance(seed, string(pod.UID))}
	var err error
	if text := pod.Annotations[v1alpha1.AnnotationBehavior]; text != "" {
		var behavior *compiled
		if behavior, err = r.ofAnnotation(text); err == nil {
			out.layers = append(out.layers, behavior)
		}
	}
	for i := range r.rules {
		if r.rules[i].selects(pod, node) {
			out.layers = append(out.layers, r.rules[i].behavior)
		}
	}
	return out, err
}

func (r *Rules) ofAnnotation(text string) (*compiled, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.own[text]; ok {
		return known.behavior, known.err
	}
	if len(r.own) >= maxOwn {
		clear(r.own)
	}
	behavior, err := ParseAnnotation(text)
	r.own[text] = own{behavior, err}
	return behavior, err
}

// ParseAnnotation reads the text of a pod's own annotation.
func ParseAnnotation(text string) (*compiled, error) {
	var b v1alpha1.Behavior
	err := yaml.UnmarshalStrict([]byte(text), &b)
	var out *compiled
	if err == nil {
		out, err = compile("", &b)
	}
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationBehavior, err)
	}
	return out, nil
}
