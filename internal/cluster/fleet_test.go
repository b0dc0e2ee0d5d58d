package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/api/v1alpha1"
)

func simulated(t testing.TB, nodes int32) Config {
	return Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", Simulated: &Simulated{Seed: 1, Groups: []v1alpha1.NodeGroup{
		{ObjectMeta: metav1.ObjectMeta{Name: "sim"}, Spec: v1alpha1.NodeGroupSpec{Count: nodes}},
	}}}
}

func await(t *testing.T, what string, done func() (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return done() })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func simulatedJob() *batchv1.Job {
	two := int32(2)
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{
		Completions: &two, Parallelism: &two, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationBehavior: "containers: [{runFor: 1s, logs: {lines: [begun, done]}}]"}},
			Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "hello:1"}}},
		},
	}}
}

// TestSimulatedNodes: through a whole cluster, what is bound to simulated nodes runs, ends, is deleted, and survives a restart as it is.
func TestSimulatedNodes(t *testing.T) {
	config := simulated(t, 3)
	c, client := start(t, config)
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), deployment("web", 5), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), simulatedJob(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "5 replicas", func() (bool, error) {
		d, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 5, err
	})
	await(t, "the end of the job", func() (bool, error) {
		j, err := client.BatchV1().Jobs("default").Get(t.Context(), "job", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 2 && j.Status.CompletionTime != nil, err
	})
	checkLogs(t, client)
	before := runs(t, client)

	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	config.Simulated.Groups = nil
	_, client = start(t, config)
	await(t, "renewed leases", func() (bool, error) {
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		renewed := 0
		for i := range leases.Items {
			if time.Since(leases.Items[i].Spec.RenewTime.Time) < 2*time.Second {
				renewed++
			}
		}
		return renewed == 3, err
	})
	if after := runs(t, client); after != before {
		t.Errorf("after a restart:\n%s\nbefore:\n%s", after, before)
	}
	deletePods(t, client)
}

const group = `{"apiVersion": "bayplan.dev/v1alpha1", "kind": "NodeGroup", "metadata": {"name": "gpu"},
	"spec": {"count": 3, "template": {"metadata": {"labels": {"zone": "{a,b}"}}, "status": {"capacity": {"cpu": "8", "memory": "16Gi", "example.com/gpu": "4"}}}}}`

const rule = `{"apiVersion": "bayplan.dev/v1alpha1", "kind": "PodBehavior", "metadata": {"name": "short"},
	"spec": {"selector": {"owners": ["Job"]}, "behavior": {"containers": [{"runFor": "100ms", "exitMessage": "by a rule"}]}}}`

// TestObjects: NodeGroups and PodBehaviors of the API do what files do.
func TestObjects(t *testing.T) {
	config := simulated(t, 0)
	config.Simulated.Groups = nil
	c, client := start(t, config)
	objects := dynamic.NewForConfigOrDie(c.Admin())
	create := func(resource schema.GroupVersionResource, text string) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := objects.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create(v1alpha1.PodBehaviors, rule)
	create(v1alpha1.NodeGroups, group)
	awaitNodes := func(want int) {
		t.Helper()
		await(t, fmt.Sprintf("%d nodes", want), func() (bool, error) {
			list, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelNodeGroup + "=gpu"})
			return err == nil && len(list.Items) == want, err
		})
	}
	awaitNodes(3)
	job := simulatedJob()
	job.Spec.Template.Annotations = nil
	if _, err := client.BatchV1().Jobs("default").Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of the job", func() (bool, error) {
		j, err := client.BatchV1().Jobs("default").Get(t.Context(), "job", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 2, err
	})
	for count, what := range map[int]string{5: "more", 1: "fewer"} {
		patch := fmt.Appendf(nil, `{"spec": {"count": %d}}`, count)
		if _, err := objects.Resource(v1alpha1.NodeGroups).Patch(t.Context(), "gpu", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(what, err)
		}
		awaitNodes(count)
	}
	if err := objects.Resource(v1alpha1.NodeGroups).Delete(t.Context(), "gpu", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitNodes(0)
}

func checkLogs(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "job-name=job"})
	if err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d pods of the job, %v", len(pods.Items), err)
	}
	log, err := client.CoreV1().Pods("default").GetLogs(pods.Items[0].Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || string(log) != "begun\ndone\n" {
		t.Errorf("log %q, %v", log, err)
	}
}

// runs are the runs of all containers, one a line.
func runs(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range pods.Items {
		s := p.Status.ContainerStatuses[0]
		fmt.Fprintln(&out, p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.PodIP, s.ContainerID, s.RestartCount, s.State.String())
	}
	return out.String()
}

// deletePods deletes a pod, which ends and is replaced.
func deletePods(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(pods.Items) != 5 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	name := pods.Items[0].Name
	if err := client.CoreV1().Pods("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the end of a deleted pod", func() (bool, error) {
		_, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	await(t, "its replacement", func() (bool, error) {
		d, err := client.AppsV1().Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 5, err
	})
}
