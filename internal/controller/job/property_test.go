package job_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/job"
)

const manifest = `
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: %d
  parallelism: %d
  completionMode: %s
  backoffLimit: 1000
  selector: {matchLabels: {job: work}}
  template: {metadata: {labels: {job: work}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
`

// Each pod counts once, whether it succeeds, fails, or is lost, and whoever deletes it or restarts the controller when: as many succeed as were asked for, and as
// many count as failed as did fail or were taken away.
func TestCountsAreExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := work{
			completions: rapid.IntRange(1, 6).Draw(rt, "completions"), parallelism: rapid.IntRange(1, 4).Draw(rt, "parallelism"),
			mode: rapid.SampledFrom([]string{"NonIndexed", "Indexed"}).Draw(rt, "mode"),
		}
		w.random = rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		if problem := w.run(t, rapid.IntRange(0, 30).Draw(rt, "steps")); problem != "" {
			rt.Fatal(problem)
		}
	})
}

type work struct {
	completions, parallelism int
	mode                     string
	random                   *rand.Rand
	succeeded, failed        int
	ended                    map[string]bool
}

func (w *work) run(t *testing.T, steps int) (problem string) {
	w.ended = map[string]bool{}
	controllertest.Bubble(t, func(t *testing.T, e *controllertest.Env) {
		stop := begin(t, e)
		e.Command("apply", fmt.Sprintf(manifest, w.completions, w.parallelism, w.mode))
		for range steps {
			if w.random.IntN(8) == 0 {
				stop()
				stop = begin(t, e)
			}
			w.disturb(e, false)
			if w.random.IntN(3) == 0 {
				e.Advance(10 * time.Minute) // longer than the delay after a failure
			}
		}
		for range 2*w.completions + 10 {
			e.Advance(10 * time.Minute)
			for range w.parallelism {
				w.disturb(e, true)
			}
		}
		e.Advance(10 * time.Minute)
		problem = w.compare(e)
	})
	return problem
}

func begin(t *testing.T, e *controllertest.Env) func() {
	stop, err := e.Start(job.New)
	if err != nil {
		t.Fatal(err)
	}
	return stop
}

// disturb ends a pod. Each pod is ended once: what is done to one that has ended must not count.
func (w *work) disturb(e *controllertest.Env, well bool) {
	for _, pod := range e.Pods() {
		if pod.DeletionTimestamp != nil && !w.finalized(pod) {
			_ = e.SetPod(pod, "gone")
		}
	}
	pods := e.Pods()
	if len(pods) == 0 {
		return
	}
	pod := pods[w.random.IntN(len(pods))]
	if w.ended[pod.Name] {
		if pod.DeletionTimestamp == nil && w.random.IntN(2) == 0 {
			_ = e.Client.CoreV1().Pods(pod.Namespace).Delete(e.Context(), pod.Name, metav1.DeleteOptions{})
		}
		return
	}
	switch what := w.random.IntN(3); {
	case well || what == 0:
		if e.SetPod(pod, "run", "succeed") == nil {
			w.ended[pod.Name] = true
			w.succeeded++
		}
	case what == 1:
		if e.SetPod(pod, "run", "fail") == nil {
			w.ended[pod.Name] = true
			w.failed++
		}
	default:
		if e.Client.CoreV1().Pods(pod.Namespace).Delete(e.Context(), pod.Name, metav1.DeleteOptions{}) == nil {
			w.ended[pod.Name] = true
			w.failed++
		}
	}
}

func (w *work) finalized(pod *corev1.Pod) bool { return len(pod.Finalizers) > 0 }

func (w *work) compare(e *controllertest.Env) string {
	got, err := e.Client.BatchV1().Jobs("default").Get(e.Context(), "work", metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	s := got.Status
	complete := strings.Contains(fmt.Sprint(s.Conditions), "Complete")
	if !complete || int(s.Succeeded) != w.completions || w.succeeded != w.completions || int(s.Failed) != w.failed || s.Active != 0 || s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Failed)+len(s.UncountedTerminatedPods.Succeeded) > 0 {
		return fmt.Sprintf("%d of %d pods succeeded and %d failed or were taken away; status: %+v", w.succeeded, w.completions, w.failed, s)
	}
	if want := fmt.Sprintf("0-%d", w.completions-1); w.mode == "Indexed" && w.completions > 2 && s.CompletedIndexes != want {
		return fmt.Sprintf("completedIndexes is %q, want %q", s.CompletedIndexes, want)
	}
	return ""
}
