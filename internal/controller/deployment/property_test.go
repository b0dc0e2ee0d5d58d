package deployment_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	intstrutil "k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/deployment"
	"github.com/bayplan/bayplan/internal/controller/replicaset"
)

const manifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: %s, maxUnavailable: %s}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "i:%d"}]}
`

// bounds watches every single write for more pods or fewer available ones than the strategy allows.
type bounds struct {
	most, least int
	on          bool
	broken      string
}

func (b *bounds) check(api *controllertest.API, r controllertest.Request) {
	if !b.on || b.broken != "" || r.Resource.Resource != "pods" {
		return
	}
	active, available := 0, 0
	for _, o := range api.Objects("pods") {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		if o.GetDeletionTimestamp() != nil || phase == "Failed" || phase == "Succeeded" {
			continue
		}
		active++
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Ready" && c["status"] == "True" {
				available++
			}
		}
	}
	if active > b.most || available < b.least {
		b.broken = fmt.Sprintf("after %q there are %d pods (at most %d) and %d available (at least %d)", r, active, b.most, available, b.least)
	}
}

// A rolling update keeps to maxSurge and maxUnavailable whatever the order in which pods become ready and end, and whatever
// other templates come in the middle.
func TestRollingUpdateKeepsItsBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		replicas := rapid.IntRange(1, 6).Draw(rt, "replicas")
		limit := rapid.SampledFrom([]string{"0", "1", "2", "25%", "50%", "100%"})
		surge, unavailable := limit.Draw(rt, "maxSurge"), limit.Draw(rt, "maxUnavailable")
		seed := rapid.Uint64().Draw(rt, "seed")
		steps := rapid.IntRange(1, 40).Draw(rt, "steps")
		if problem := roll(t, replicas, surge, unavailable, seed, steps); problem != "" {
			rt.Fatal(problem)
		}
	})
}

// The worked values: 3 replicas with surge 0 and unavailable 1, and with surge 1 and unavailable 0.
func TestRollingUpdateWorkedValues(t *testing.T) {
	for seed := range uint64(10) {
		for _, v := range [][2]string{{"0", "1"}, {"1", "0"}} {
			if problem := roll(t, 3, v[0], v[1], seed, 40); problem != "" {
				t.Error(problem)
			}
		}
	}
}

func roll(t *testing.T, replicas int, surge, unavailable string, seed uint64, steps int) (problem string) {
	random := rand.New(rand.NewPCG(seed, 0))
	b := limits(replicas, surge, unavailable)
	controllertest.Bubble(t, func(_ *testing.T, e *controllertest.Env) {
		e.API.Observe = func(r controllertest.Request) { b.check(e.API, r) }
		e.Kubelet(true)
		apply := func(image int) {
			e.Command("apply", fmt.Sprintf(manifest, replicas, quote(surge), quote(unavailable), image))
		}
		apply(0)
		b.on = true
		e.Kubelet(false)
		for range steps {
			if random.IntN(6) == 0 {
				apply(random.IntN(4))
			}
			pods := e.Pods()
			pod := pods[random.IntN(len(pods))]
			if pod.DeletionTimestamp != nil {
				_ = e.SetPod(pod, "gone")
			} else if pod.Status.Phase == corev1.PodPending {
				_ = e.SetPod(pod, "run", "ready") // a conflict means that the pod was just deleted
			}
			if random.IntN(3) == 0 {
				e.Settle()
			}
		}
		apply(9)
		e.Kubelet(true)
		e.Settle()
		problem = b.broken
		if text := e.Command("get deployments web status.updatedReplicas status.availableReplicas status.replicas", ""); problem == "" && strings.Count(text, fmt.Sprint(": ", replicas, "\n")) != 3 {
			problem = "the rollout did not end:\n" + text
		}
	}, deployment.New, replicaset.New)
	return problem
}

func quote(limit string) string {
	if strings.HasSuffix(limit, "%") {
		return `"` + limit + `"`
	}
	return limit
}

func limits(replicas int, surge, unavailable string) *bounds {
	s, u := intstrutil.Parse(surge), intstrutil.Parse(unavailable)
	most, _ := intstrutil.GetScaledValueFromIntOrPercent(&s, replicas, true)
	least, _ := intstrutil.GetScaledValueFromIntOrPercent(&u, replicas, false)
	if most == 0 && least == 0 {
		least = 1
	}
	return &bounds{most: replicas + most, least: replicas - least}
}
