package all

import (
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/controller/cronjob"
	"github.com/bayplan/bayplan/internal/controller/ephemeralvolume"
	"github.com/bayplan/bayplan/internal/controller/job"
	"github.com/bayplan/bayplan/internal/controller/podgc"
	"github.com/bayplan/bayplan/internal/controller/tainteviction"
	"github.com/bayplan/bayplan/internal/controller/ttlafterfinished"
)

const measured = `
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec:
  completions: 2
  parallelism: 2
  ttlSecondsAfterFinished: 60
  selector: {matchLabels: {job: work}}
  template: {metadata: {labels: {job: work}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: hourly}
spec:
  schedule: "0 * * * *"
  concurrencyPolicy: Allow
  jobTemplate: {spec: {selector: {matchLabels: {cron: hourly}}, template: {metadata: {labels: {cron: hourly}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
---
apiVersion: v1
kind: Pod
metadata: {name: own, finalizers: [example.org/look]}
spec: {nodeName: n1, volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}], containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: Pod
metadata: {name: waiting, finalizers: [example.org/look]}
spec: {containers: [{name: c, image: i}]}`

// What controllers do is counted under the names that dashboards for Kubernetes know.
func TestMetrics(t *testing.T) {
	before := samples(t)
	controllertest.Bubble(t, func(_ *testing.T, e *controllertest.Env) {
		e.Command("apply", measured)
		e.Command("pod work* run succeed", "")
		e.Command("delete pods waiting", "")
		e.Advance(2 * time.Hour)
		e.Command("patch nodes n1", "spec: {taints: [{key: k, effect: NoExecute}]}")
	}, job.New, cronjob.New, ephemeralvolume.New, podgc.New, tainteviction.New, ttlafterfinished.New)
	after := samples(t)
	for name, want := range map[string]float64{
		"job_controller_jobs_finished_total": 1, "job_controller_job_pods_finished_total": 2, "ttl_after_finished_controller_job_deletion_duration_seconds": 1,
		"cronjob_controller_job_creation_skew_duration_seconds": 2, "ephemeral_volume_controller_create_total": 1, "ephemeral_volume_controller_create_failures_total": 0,
		"pod_gc_collector_force_delete_pods_total": 1,
		// The pod with the claim, and the two of the Job, which have finished.
		"taint_eviction_controller_pod_deletions_total": 3, "taint_eviction_controller_pod_deletion_duration_seconds": 3,
	} {
		if got := after[name] - before[name]; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// samples adds up, by the metric's name, what was counted, or how often something was measured.
func samples(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetType().String() == "HISTOGRAM" {
				out[family.GetName()] += float64(m.GetHistogram().GetSampleCount())
			} else {
				out[family.GetName()] += m.GetCounter().GetValue()
			}
		}
	}
	return out
}
