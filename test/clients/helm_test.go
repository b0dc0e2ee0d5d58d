package clients

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/testcluster"
)

const (
	helmNamespace = "docks"
	helmRelease   = "north"
	// helmTimeout is that of helm's --timeout where all is well.
	helmTimeout = 40 * time.Second
)

// helm is Helm, with --wait and --wait-for-jobs.
type helm struct {
	ctx     context.Context
	t       *testing.T
	config  *action.Configuration
	chart   *chart.Chart
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

func newHelm(ctx context.Context, t *testing.T, cluster *testcluster.Cluster) *helm {
	h := &helm{ctx: ctx, t: t, config: action.NewConfiguration()}
	flags := genericclioptions.NewConfigFlags(true)
	path, namespace := cluster.Kubeconfig(), helmNamespace
	flags.KubeConfig, flags.Namespace = &path, &namespace
	must(t, h.config.Init(flags, helmNamespace, "secret"))
	var err error
	h.chart, err = loader.LoadDir("testdata/chart")
	must(t, err)
	h.client, h.dynamic = kubernetes.NewForConfigOrDie(cluster.Config()), dynamic.NewForConfigOrDie(cluster.Config())
	return h
}

func (h *helm) install(values map[string]any) error {
	install := action.NewInstall(h.config)
	install.ReleaseName, install.Namespace, install.CreateNamespace = helmRelease, helmNamespace, true
	install.WaitStrategy, install.WaitForJobs, install.Timeout = kube.StatusWatcherStrategy, true, helmTimeout
	_, err := install.RunWithContext(h.ctx, h.chart, values)
	return err
}

func (h *helm) upgrade(values map[string]any, timeout time.Duration, undo bool) error {
	upgrade := action.NewUpgrade(h.config)
	upgrade.Namespace, upgrade.RollbackOnFailure, upgrade.ServerSideApply = helmNamespace, undo, "auto"
	upgrade.WaitStrategy, upgrade.WaitForJobs, upgrade.Timeout = kube.StatusWatcherStrategy, true, timeout
	_, err := upgrade.RunWithContext(h.ctx, helmRelease, h.chart, values)
	return err
}

func (h *helm) rollback(version int) error {
	rollback := action.NewRollback(h.config)
	rollback.Version, rollback.WaitStrategy, rollback.WaitForJobs, rollback.Timeout = version, kube.StatusWatcherStrategy, true, helmTimeout
	return rollback.Run(helmRelease)
}

func (h *helm) uninstall() error {
	uninstall := action.NewUninstall(h.config)
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DeletionPropagation = kube.StatusWatcherStrategy, helmTimeout, "foreground"
	_, err := uninstall.Run(helmRelease)
	return err
}

// history is the status of each revision.
func (h *helm) history() string {
	h.t.Helper()
	revisions, err := action.NewHistory(h.config).Run(helmRelease)
	must(h.t, err)
	var all []string
	for _, r := range revisions {
		all = append(all, string(r.(*release.Release).Info.Status))
	}
	return strings.Join(all, " ")
}

// check wants the release's objects to be as values say, and ready.
func (h *helm) check(replicas int32, message string) {
	h.t.Helper()
	deployment, err := h.client.AppsV1().Deployments(helmNamespace).Get(h.ctx, helmRelease, metav1.GetOptions{})
	must(h.t, err)
	if *deployment.Spec.Replicas != replicas || !available(deployment, replicas) {
		h.t.Errorf("the Deployment: %d replicas, status %+v; want %d, all available", *deployment.Spec.Replicas, deployment.Status, replicas)
	}
	settings, err := h.client.CoreV1().ConfigMaps(helmNamespace).Get(h.ctx, helmRelease, metav1.GetOptions{})
	must(h.t, err)
	if settings.Data["message"] != message {
		h.t.Errorf("the message is %q, want %q", settings.Data["message"], message)
	}
	berth, err := h.berths().Get(h.ctx, helmRelease, metav1.GetOptions{})
	must(h.t, err)
	if length, _, _ := unstructured.NestedInt64(berth.Object, "spec", "length"); length != int64(10*replicas) {
		h.t.Errorf("the berth's length is %d, want %d", length, 10*replicas)
	}
}

func available(d *appsv1.Deployment, replicas int32) bool {
	return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == replicas && d.Status.AvailableReplicas == replicas
}

func (h *helm) berths() dynamic.ResourceInterface {
	return h.dynamic.Resource(schema.GroupVersionResource{Group: "harbour.example.org", Version: "v1", Resource: "berths"}).Namespace(helmNamespace)
}

// hooks are those that have run, in order of their names.
func (h *helm) hooks() string {
	h.t.Helper()
	jobs, err := h.client.BatchV1().Jobs(helmNamespace).List(h.ctx, metav1.ListOptions{})
	must(h.t, err)
	var all []string
	for _, job := range jobs.Items {
		if job.Status.Succeeded == 1 {
			all = append(all, strings.TrimPrefix(job.Name, helmRelease+"-"))
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestHelm installs, upgrades, rolls back and uninstalls a chart with a definition and hooks, and waits each time.
func TestHelm(t *testing.T) {
	ctx := testContext(t)
	h := newHelm(ctx, t, startWithNode(ctx, t))
	must(t, h.install(nil))
	h.check(2, "ahoy")
	if got := h.hooks(); got != "pre-install" {
		t.Errorf("hooks after install: %s", got)
	}
	must(t, h.upgrade(map[string]any{"replicas": 3, "message": "land"}, helmTimeout, false))
	h.check(3, "land")
	if got := h.hooks(); got != "post-upgrade pre-install" {
		t.Errorf("hooks after upgrade: %s", got)
	}

	// What does not get ready fails in time, and is undone.
	err := h.upgrade(map[string]any{"replicas": 3, "message": "storm", "broken": true}, 3*time.Second, true)
	if err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Errorf("an upgrade to what cannot be scheduled: %v", err)
	}
	h.check(3, "land")
	if got := h.history(); got != "superseded superseded failed deployed" {
		t.Errorf("history: %s", got)
	}
	must(t, h.rollback(1))
	h.check(2, "ahoy")

	must(t, h.uninstall())
	if got := h.hooks(); !strings.Contains(got, "pre-delete") {
		t.Errorf("hooks after uninstall: %s", got)
	}
	if _, err := h.client.AppsV1().Deployments(helmNamespace).Get(ctx, helmRelease, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment after uninstall: %v", err)
	}
	// Helm leaves definitions where they are.
	if list, err := h.berths().List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("berths after uninstall: %v, %v", list, err)
	}
}
