package statefulset_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/statefulset"
)

const manifest = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: %d
  serviceName: db
  podManagementPolicy: OrderedReady
  selector: {matchLabels: {app: db}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "i:%d"}]}
`

// order watches every single write of the controller.
type order struct{ broken string }

func (o *order) check(api *controllertest.API, r controllertest.Request) {
	if o.broken != "" || r.FromOutside() || r.Resource.Resource != "pods" || r.Sub != "" {
		return
	}
	at := ordinal(r.Name)
	healthy, there := map[int]bool{}, map[int]bool{}
	for _, pod := range api.Objects("pods") {
		there[ordinal(pod.GetName())], healthy[ordinal(pod.GetName())] = true, isHealthy(pod)
	}
	switch r.Verb {
	case "create":
		for before := range at {
			if !healthy[before] {
				o.broken = fmt.Sprintf("db-%d is made although db-%d is not ready", at, before)
			}
		}
	case "delete":
		for after := range there {
			if after > at && !healthy[after] {
				o.broken = fmt.Sprintf("db-%d is deleted although db-%d is there and not ready", at, after)
			}
		}
	}
}

func ordinal(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "db-"))
	if err != nil {
		panic(err)
	}
	return n
}

func isHealthy(pod *unstructured.Unstructured) bool {
	if pod.GetDeletionTimestamp() != nil {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, c := range conditions {
		if c := c.(map[string]any); c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

// Pods are made in order, each when all before it are ready, and taken away in the reverse order, each when all behind it are gone or ready: whatever
// the order of pod events, of new sizes and of new templates.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed, steps := rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(1, 40).Draw(rt, "steps")
		if problem := live(t, seed, steps); problem != "" {
			rt.Fatal(problem)
		}
	})
}

func live(t *testing.T, seed uint64, steps int) (problem string) {
	random := rand.New(rand.NewPCG(seed, 0))
	var o order
	controllertest.Bubble(t, func(_ *testing.T, e *controllertest.Env) {
		e.API.Observe = func(r controllertest.Request) { o.check(e.API, r) }
		apply := func(replicas, image int) {
			e.Settle() // or a status that is being written makes a conflict
			e.Command("apply", fmt.Sprintf(manifest, replicas, image))
		}
		apply(3, 0)
		for range steps {
			if random.IntN(5) == 0 {
				apply(random.IntN(6), random.IntN(3))
			}
			disturb(e, random)
			if random.IntN(3) == 0 {
				e.Settle()
			}
		}
		apply(4, 9)
		for range 20 {
			e.Kubelet(true)
			e.Advance(time.Minute) // longer than any delay after a conflict
			for _, pod := range e.Pods() {
				_ = e.SetPod(pod, "ready") // a conflict means that the pod was just deleted
			}
		}
		problem = o.broken
		text := e.Command("get statefulsets db status.replicas status.readyReplicas status.updatedReplicas", "")
		if problem == "" && strings.Count(text, ": 4\n") != 3 {
			problem = "the end is not what was asked for:\n" + text
		}
	}, statefulset.New)
	return problem
}

// disturb does something to a pod. What makes one unhealthy waits until the controller rests: nothing that it decided before can take it into account.
func disturb(e *controllertest.Env, random *rand.Rand) {
	pods := e.Pods()
	if len(pods) == 0 {
		return
	}
	pod := pods[random.IntN(len(pods))]
	switch {
	case pod.DeletionTimestamp != nil:
		_ = e.SetPod(pod, "gone")
	case pod.Status.Phase == corev1.PodPending:
		_ = e.SetPod(pod, "run", "ready")
	case random.IntN(4) == 0:
		e.Settle()
		_ = e.SetPod(pod, "notready")
	case random.IntN(4) == 0:
		e.Settle()
		_ = e.Client.CoreV1().Pods(pod.Namespace).Delete(e.Context(), pod.Name, metav1.DeleteOptions{})
	default:
		_ = e.SetPod(pod, "ready")
	}
}
