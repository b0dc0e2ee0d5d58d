package node

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// manifests is a directory of static pods.
type manifests string

func (m manifests) write(t *testing.T, image string) {
	t.Helper()
	text := "apiVersion: v1\nkind: Pod\nmetadata: {name: s}\nspec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: \"" + image + "\"}]}"
	if err := os.WriteFile(filepath.Join(string(m), "s.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m manifests) remove(t *testing.T) {
	t.Helper()
	if err := os.Remove(filepath.Join(string(m), "s.yaml")); err != nil {
		t.Fatal(err)
	}
}

// giveUIDs makes the API give objects UIDs, as the real one does.
func (c *cluster) giveUIDs() {
	made := 0
	c.api.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		pod := action.(clienttesting.CreateAction).GetObject().(*v1.Pod)
		if pod.UID == "" {
			made++
			pod.UID = types.UID(fmt.Sprint("mirror-", made))
		}
		return false, nil, nil
	})
}

func TestStaticPod(t *testing.T) {
	dir := manifests(t.TempDir())
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.StaticPods = string(dir) }
		dir.write(t, "app:1")
		c.giveUIDs()
		c.start()
		c.expect("s-n1", "Running app+=running/0")
		mirror := c.pod("s-n1")
		if mirror.Annotations["kubernetes.io/config.mirror"] == "" || mirror.OwnerReferences[0].Name != "n1" || mirror.Status.PodIP == "" {
			t.Errorf("mirror %+v", mirror)
		}

		// Who deletes the mirror has not deleted the pod.
		c.cri.Journal()
		if err := c.api.CoreV1().Pods("default").Delete(t.Context(), "s-n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.settle()
		c.expect("s-n1", "Running app+=running/0")
		c.expectJournal()

		// A restart of the agent leaves it alone.
		c.stop()
		c.start()
		c.expectJournal()
		c.expect("s-n1", "Running app+=running/0")

		// Another manifest is another pod, after the end of the former.
		old := c.pod("s-n1").Annotations["kubernetes.io/config.mirror"]
		c.cri.AddImage("app:2")
		dir.write(t, "app:2")
		c.after(20 * time.Second)
		c.expect("s-n1", "Running app+=running/0")
		if now := c.pod("s-n1"); now.Annotations["kubernetes.io/config.mirror"] == old || now.Status.ContainerStatuses[0].Image != "app:2" {
			t.Errorf("after the change the mirror is %+v", now)
		}

		dir.remove(t)
		c.after(20 * time.Second)
		if _, err := c.api.CoreV1().Pods("default").Get(t.Context(), "s-n1", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the mirror is still there: %v", err)
		}
		if left, err := os.ReadDir(filepath.Join(c.root, "pods")); len(left) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// A manifest that was changed or removed while no agent ran leaves nothing of the former pod.
func TestStaticPodChangedMeanwhile(t *testing.T) {
	dir := manifests(t.TempDir())
	inCluster(t, func(c *cluster) {
		c.config = func(cfg *Config) { cfg.StaticPods = string(dir) }
		dir.write(t, "app:1")
		c.start()
		c.stop()
		dir.remove(t)
		c.start()
		c.after(20 * time.Second)
		if list, err := c.api.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
			t.Errorf("pods %v, %v", list.Items, err)
		}
		if left, err := os.ReadDir(filepath.Join(c.root, "pods")); len(left) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}
