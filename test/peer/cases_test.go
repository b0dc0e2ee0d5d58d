package peer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestCases compares the decisions in testdata, each of which was once different. A file is objects in YAML, told in
// order; the last one is the pod to be decided on. A pod before it that has a node runs, one that has none is nominated.
// The first line is what kube-scheduler makes of it: "# -> NODE", or "# " and the message, and then "# preempts PODS on
// NODE" if it preempts.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	must(err)
	if len(files) == 0 {
		t.Fatal("there are no cases")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(err)
			outcome := decideCase(t, text)
			if !bytes.HasPrefix(text, []byte(outcome)) {
				t.Errorf("%s begins otherwise than with what came of it:\n%s", file, outcome)
			}
		})
	}
}

func decideCase(t *testing.T, text []byte) (outcome string) {
	w, err := newWorld(t.Context())
	must(err)
	objects := decodeAll(t, text)
	for _, object := range objects[:len(objects)-1] {
		w.tell(t, object)
	}
	pod := objects[len(objects)-1].(*v1.Pod)
	trial, differences, err := w.compare(pod)
	must(err)
	outcome = "# " + trial.verdict.message + "\n"
	if node := trial.verdict.chosen; node != "" {
		outcome = "# -> " + node + "\n"
	} else if len(trial.nodes) > 0 {
		p, more, err := w.comparePreemption(trial)
		must(err)
		differences = append(differences, more...)
		if len(p.found) > 0 {
			outcome += fmt.Sprintf("# preempts %s on %s\n", strings.Join(p.chosen.victims, ", "), p.chosen.node)
		}
	}
	if len(differences) > 0 {
		w.fail(t, "case", pod, differences)
	}
	return outcome
}

// decodeAll reads objects, and gives pods what the API server would have given them.
func decodeAll(t *testing.T, text []byte) (out []runtime.Object) {
	decoder := scheme.Codecs.UniversalDeserializer()
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if pod, ok := object.(*v1.Pod); ok {
			complete(pod)
		}
		out = append(out, object)
	}
	return out
}

func complete(pod *v1.Pod) {
	pod.UID, pod.Spec.SchedulerName = types.UID(pod.Name), v1.DefaultSchedulerName
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = new(int32)
	}
}

func (w *world) tell(t *testing.T, object runtime.Object) {
	switch o := object.(type) {
	case *v1.Node:
		w.setNode(o)
	case *v1.Namespace:
		w.setNamespace(o.Name, o.Labels)
	case *v1.Service:
		w.setService(o.Namespace, o.Name, o.Spec.Selector)
	case *appsv1.ReplicaSet:
		w.setReplicaSet(o.Namespace, o.Name, o.Spec.Selector)
	case *policyv1.PodDisruptionBudget:
		w.setBudget(o)
	case *v1.Pod:
		if o.Spec.NodeName == "" {
			w.nominate(o, o.Status.NominatedNodeName)
			return
		}
		if o.Status.StartTime == nil {
			o.Status.StartTime = &metav1.Time{Time: w.now.Add(-time.Duration(len(w.pods)) * time.Minute)}
		}
		w.addPod(o)
	default:
		t.Fatalf("the world has no %T", object)
	}
}
