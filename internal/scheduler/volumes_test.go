package scheduler

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bayplan/bayplan/internal/scheduler/transcript"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// volumeResources are what an API server with storage has.
var volumeResources = []*metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "persistentvolumes"}, {Name: "persistentvolumeclaims"}}},
	{GroupVersion: "storage.k8s.io/v1", APIResources: []metav1.APIResource{
		{Name: "storageclasses"}, {Name: "csinodes"}, {Name: "csidrivers"}, {Name: "csistoragecapacities"}, {Name: "volumeattachments"},
	}},
}

// startWithClaim runs a scheduler in a cluster where the pod p uses the claim data, which waits for its first pod.
func startWithClaim(t *testing.T, prepare func(*cluster)) *cluster {
	wait, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "data", ResourceVersion: "1"}}
	claim.Spec.StorageClassName = &class
	c := newCluster(t, transcript.Node(t, "n1"), claim, transcript.Pod(t, "p", "claim=data"),
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, VolumeBindingMode: &wait, Provisioner: "csi.example.com"})
	c.Resources = volumeResources
	c.PrependReactor("update", "persistentvolumeclaims", c.version)
	prepare(c)
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// version gives a claim a new version when it is written, which the tracker does not.
func (c *cluster) version(action clienttesting.Action) (bool, runtime.Object, error) {
	claim := action.(clienttesting.UpdateAction).GetObject().(*v1.PersistentVolumeClaim).DeepCopy()
	before, _ := strconv.Atoi(claim.ResourceVersion)
	claim.ResourceVersion = strconv.Itoa(before + 1)
	return true, claim, c.Tracker().Update(action.GetResource(), claim, claim.Namespace)
}

func (c *cluster) claim(t *testing.T) *v1.PersistentVolumeClaim {
	t.Helper()
	claim, err := c.CoreV1().PersistentVolumeClaims("default").Get(context.Background(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

func (c *cluster) node(t *testing.T) string {
	t.Helper()
	synctest.Wait()
	pod, err := c.CoreV1().Pods("default").Get(context.Background(), "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod.Spec.NodeName
}

func TestPodIsBoundAfterItsVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithClaim(t, func(*cluster) {})
		if got := c.claim(t).Annotations["volume.kubernetes.io/selected-node"]; got != "n1" || c.node(t) != "" {
			t.Fatalf("claim is to be provisioned for %q, pod is on %q", got, c.node(t))
		}
		ctx := context.Background()
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
		if _, err := c.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		claim := c.claim(t)
		claim.Spec.VolumeName = "made"
		claim.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		if _, err := c.CoreV1().PersistentVolumeClaims("default").Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := c.node(t); got != "n1" {
			t.Errorf("pod is on %q after its claim has been bound", got)
		}
	})
}

func TestPodWhoseVolumesAreNotBoundInTimeIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startWithClaim(t, func(*cluster) {})
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if got := c.node(t); got != "" {
			t.Fatalf("pod is on %q", got)
		}
		var told bool
		for len(c.recorder.Events) > 0 {
			told = told || <-c.recorder.Events == "Warning FailedScheduling binding volumes: not bound in time"
		}
		if !told {
			t.Error("no event tells that the volumes were not bound in time")
		}
	})
}

func TestVolumesThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		c := startWithClaim(t, func(c *cluster) {
			c.PrependReactor("update", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				failures--
				return failures >= 0, nil, errors.New("connection refused")
			})
		})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := c.claim(t).Annotations["volume.kubernetes.io/selected-node"]; got != "n1" {
			t.Errorf("claim is to be provisioned for %q after two failures", got)
		}
	})
}
