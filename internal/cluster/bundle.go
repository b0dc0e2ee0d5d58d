package cluster

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// bundleTimeout bounds each question to a cluster that may be broken.
const bundleTimeout = 20 * time.Second

// SupportBundle writes an archive (tar.gz) of what is known of the cluster on a data directory. What cannot be had is named in errors.txt, and the rest is there.
func SupportBundle(ctx context.Context, dataDir, version string, w io.Writer) error {
	zipped := gzip.NewWriter(w)
	b := &bundle{ctx: ctx, dataDir: dataDir, tar: tar.NewWriter(zipped)}
	b.addJSON("bayplan.json", map[string]string{"Version": version, "GoVersion": runtime.Version(), "System": runtime.GOOS + "/" + runtime.GOARCH, "DataDir": dataDir})
	b.machine()
	b.addFile("log.txt", filepath.Join(dataDir, "log"))
	status := b.status()
	b.inspect("goroutines.txt", "goroutines")
	b.inspect("heap.pb.gz", "heap")
	if status.Host != "" {
		b.api(status)
	}
	b.add("errors.txt", []byte(b.problems))
	return errors.Join(b.failed, b.tar.Close(), zipped.Close())
}

// bundle is an archive in the making.
type bundle struct {
	ctx      context.Context
	dataDir  string
	tar      *tar.Writer
	problems string
	// failed is why the archive cannot be written.
	failed error
}

func (b *bundle) problem(name string, err error) {
	if err != nil {
		b.problems += fmt.Sprintf("%s: %v\n", name, err)
	}
}

func (b *bundle) add(name string, data []byte) {
	if b.failed != nil {
		return
	}
	b.failed = b.tar.WriteHeader(&tar.Header{Name: "bayplan-support/" + name, Mode: 0o600, Size: int64(len(data)), ModTime: time.Now()})
	if b.failed == nil {
		_, b.failed = b.tar.Write(data)
	}
}

func (b *bundle) addJSON(name string, value any) {
	data, err := json.MarshalIndent(value, "", "  ")
	b.problem(name, err)
	b.add(name, append(data, '\n'))
}

func (b *bundle) addFile(name, path string) {
	data, err := os.ReadFile(path)
	if err == nil {
		b.add(name, data)
		return
	}
	b.problem(name, err)
}

// machine adds facts of the machine; where there is no such file, the system has other names for them.
func (b *bundle) machine() {
	for name, path := range map[string]string{
		"kernel.txt": "/proc/version", "memory.txt": "/proc/meminfo", "load.txt": "/proc/loadavg", "cgroups.txt": "/proc/cgroups",
		"mounts.txt": "/proc/self/mountinfo", "pressure-memory.txt": "/proc/pressure/memory", "os.txt": "/etc/os-release", "limits.txt": "/proc/self/limits",
	} {
		b.addFile("machine/"+name, path)
	}
}

func (b *bundle) ask(path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.ctx, bundleTimeout)
	defer cancel()
	response, err := Inspect(ctx, b.dataDir, path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func (b *bundle) inspect(name, path string) {
	data, err := b.ask(path)
	if err == nil {
		b.add(name, data)
	}
	b.problem(name, err)
}

func (b *bundle) status() Status {
	data, err := b.ask("status")
	out := Status{}
	if err == nil {
		b.add("status.json", data)
		err = json.Unmarshal(data, &out)
	}
	b.problem("status.json", err)
	return out
}

// api adds what the API server says, and all objects.
func (b *bundle) api(status Status) {
	config, err := adminAt(status)
	if err != nil {
		b.problem("api", err)
		return
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		b.problem("api", err)
		return
	}
	for name, path := range map[string]string{"readyz.txt": "/readyz?verbose", "livez.txt": "/livez?verbose", "metrics.txt": "/metrics", "version.json": "/version"} {
		data, err := fetch(b.ctx, client, config.Host+path)
		b.add(name, data)
		b.problem(name, err)
	}
	b.objects(config)
}

func adminAt(status Status) (*rest.Config, error) {
	config := &rest.Config{Host: status.Host, Timeout: bundleTimeout, QPS: -1}
	var errs [3]error
	config.CAData, errs[0] = os.ReadFile(filepath.Join(status.PKIDir, "ca.crt"))
	config.CertData, errs[1] = os.ReadFile(filepath.Join(status.PKIDir, "admin.crt"))
	config.KeyData, errs[2] = os.ReadFile(filepath.Join(status.PKIDir, "admin.key"))
	return config, errors.Join(errs[:]...)
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

func (b *bundle) objects(config *rest.Config) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		b.problem("objects", err)
		return
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		b.problem("objects", err)
		return
	}
	// A group that is not available leaves the others.
	lists, err := d.ServerPreferredResources()
	b.problem("discovery", err)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		b.problem(list.GroupVersion, err)
		for _, resource := range list.APIResources {
			b.resource(client, gv.WithResource(resource.Name))
		}
	}
}

func (b *bundle) resource(client dynamic.Interface, resource schema.GroupVersionResource) {
	ctx, cancel := context.WithTimeout(b.ctx, bundleTimeout)
	defer cancel()
	name := fmt.Sprintf("objects/%s.json", resource.GroupResource())
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		b.problem(name, err)
		return
	}
	if len(list.Items) == 0 {
		return
	}
	for i := range list.Items {
		redact(&list.Items[i])
	}
	b.addJSON(name, unstructured.UnstructuredList{Object: list.Object, Items: list.Items})
}
