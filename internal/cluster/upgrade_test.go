package cluster

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// A fixture is the state that the program of its time wrote: a data directory without keys, and a list of what was in it. One is kept for each release:
//
//	go test ./internal/cluster -run TestUpgrade -write-fixture v0.1
var writeFixture = flag.String("write-fixture", "", "Name of a fixture that TestUpgrade writes.")

const fixtures = "testdata/upgrade"

// TestUpgrade: a cluster whose state an earlier version wrote starts, and everything is there as it was.
func TestUpgrade(t *testing.T) {
	if *writeFixture != "" {
		writeUpgradeFixture(t, filepath.Join(fixtures, *writeFixture))
	}
	archives, err := filepath.Glob(filepath.Join(fixtures, "*.tar.gz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no fixtures: %v, %v", archives, err)
	}
	for _, archive := range archives {
		base := strings.TrimSuffix(archive, ".tar.gz")
		t.Run(filepath.Base(base), func(t *testing.T) {
			var want map[string]string
			data, err := os.ReadFile(base + ".json")
			if err == nil {
				err = json.Unmarshal(data, &want)
			}
			if err != nil || len(want) < 50 {
				t.Fatalf("%d objects, %v", len(want), err)
			}
			config := local(t)
			config.NoScheduler, config.Controllers = true, APIControllers()
			unpackFixture(t, archive, config.DataDir)
			c, _ := start(t, config)
			got := inventory(t, c)
			for name, uid := range want {
				if got[name] != uid {
					t.Errorf("%s: UID %q, was %q", name, got[name], uid)
				}
			}
		})
	}
}

// inventory lists every object of the cluster with its UID, but for those that come and go by themselves.
func inventory(t *testing.T, c *Cluster) map[string]string {
	t.Helper()
	config := c.Admin()
	config.QPS = -1
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(config).ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(config)
	out := map[string]string{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Verbs.String(), "list") || resource.Kind == "Event" || resource.Kind == "Lease" || resource.Kind == "ComponentStatus" {
				continue
			}
			objects, err := client.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", resource.Name, err)
			}
			for _, o := range objects.Items {
				out[resource.Name+"."+gv.Group+" "+o.GetNamespace()+"/"+o.GetName()] = string(o.GetUID())
			}
		}
	}
	return out
}

// writeUpgradeFixture runs a cluster with the objects of testdata/upgrade/objects.yaml, and keeps its state.
func writeUpgradeFixture(t *testing.T, base string) {
	t.Helper()
	config := local(t)
	c, client := start(t, config)
	awaitAccount(t.Context(), t, client, "default")
	createAll(t, c, client, filepath.Join(fixtures, "objects.yaml"))
	// The list is that of the state which is kept: controllers have stopped by then.
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	config.NoScheduler, config.Controllers = true, APIControllers()
	c, _ = start(t, config)
	data, err := json.MarshalIndent(inventory(t, c), "", "  ")
	if err == nil {
		err = os.WriteFile(base+".json", append(data, '\n'), 0o644)
	}
	if err := errors.Join(err, c.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	packFixture(t, config.DataDir, base+".tar.gz")
}

func createAll(t *testing.T, c *Cluster, client kubernetes.Interface, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	objects := dynamic.NewForConfigOrDie(c.Admin())
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		createOne(t, client, objects, o)
	}
}

func createOne(t *testing.T, client kubernetes.Interface, objects dynamic.Interface, o *unstructured.Unstructured) {
	t.Helper()
	var resources *metav1.APIResourceList
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		var err error
		resources, err = client.Discovery().ServerResourcesForGroupVersion(o.GetAPIVersion())
		if apierrors.IsNotFound(err) { // a definition that was just made is established in a moment
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatalf("%s: %v", o.GetAPIVersion(), err)
	}
	for _, r := range resources.APIResources {
		if r.Kind != o.GetKind() || strings.Contains(r.Name, "/") {
			continue
		}
		namespace := ""
		if r.Namespaced {
			namespace = "default"
		}
		gvr := o.GroupVersionKind().GroupVersion().WithResource(r.Name)
		if _, err := objects.Resource(gvr).Namespace(namespace).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		return
	}
	t.Fatalf("no resource of kind %s", o.GetKind())
}

// inFixture is what of a data directory is kept: no keys, which are made anew, and no room that etcd takes beforehand.
func inFixture(path string) bool {
	return path == "version" || strings.HasPrefix(path, "etcd/") && !strings.HasSuffix(path, ".tmp")
}

func packFixture(t *testing.T, dir, archive string) {
	t.Helper()
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	compressed := gzip.NewWriter(file)
	out := tar.NewWriter(compressed)
	state := os.DirFS(dir)
	err = fs.WalkDir(state, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !inFixture(path) {
			return err
		}
		data, err := fs.ReadFile(state, path)
		if err == nil {
			err = out.WriteHeader(&tar.Header{Name: path, Mode: 0o600, Size: int64(len(data))})
		}
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	})
	if err := errors.Join(err, out.Close(), compressed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

func unpackFixture(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decompressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for in := tar.NewReader(decompressed); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !inFixture(header.Name) {
			t.Fatalf("%+v, %v", header, err)
		}
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
