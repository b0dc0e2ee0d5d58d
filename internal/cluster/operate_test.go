package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/store"
)

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want an error that says %q", err, part)
		}
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
}

func wantAbsent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there (%v)", path, err)
	}
}

func TestRefusedStartLeavesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config := local(t)
	base := config.DataDir
	config.DataDir = filepath.Join(base, "a", "b")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	config.Port, _ = strconv.Atoi(port)
	_, err = Start(t.Context(), config)
	wantError(t, err, port, "--port")
	wantAbsent(t, filepath.Join(base, "a"))
}

func TestNewerDataIsRefusedAndKept(t *testing.T) {
	config := local(t)
	if err := os.WriteFile(filepath.Join(config.DataDir, "version"), []byte("999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), config)
	wantError(t, err, "newer bayplan", "999")
	if data, _ := os.ReadFile(filepath.Join(config.DataDir, "version")); string(data) != "999\n" {
		t.Errorf("the version became %q", data)
	}
}

func makeConfigMap(t *testing.T, client kubernetes.Interface, name string) *corev1.ConfigMap {
	t.Helper()
	made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestSnapshot: saved while it runs, restored elsewhere, a cluster takes the old credentials, has the old objects, and gives out no version twice.
func TestSnapshot(t *testing.T) {
	config := local(t)
	c, client := start(t, config)
	kept := makeConfigMap(t, client, "kept")
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := SaveSnapshot(t.Context(), config.DataDir, "v1", file); err != nil {
		t.Fatal(err)
	}
	late := makeConfigMap(t, client, "late")
	wantError(t, RestoreSnapshot(t.Context(), config.DataDir, file, true), "in use")
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := RestoreSnapshot(t.Context(), config.DataDir, file, false); !errors.Is(err, ErrNotEmpty) {
		t.Errorf("over a cluster: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a snapshot holds keys and has mode %v, %v", info.Mode(), err)
	}
	for dir, force := range map[string]bool{filepath.Join(t.TempDir(), "elsewhere"): false, config.DataDir: true} {
		if err := RestoreSnapshot(t.Context(), dir, file, force); err != nil {
			t.Fatal(err)
		}
		config.DataDir = dir
		r, _ := start(t, config)
		old := c.Admin()
		old.Host = r.Admin().Host
		checkRestored(t, kubernetes.NewForConfigOrDie(old), kept, late)
		if err := r.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The same of the stopped cluster.
		if err := SaveSnapshot(t.Context(), dir, "v1", file); err != nil {
			t.Fatal(err)
		}
	}
}

func checkRestored(t *testing.T, client kubernetes.Interface, kept, late *corev1.ConfigMap) {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := strconv.ParseInt(late.ResourceVersion, 10, 64)
	if now, _ := strconv.ParseInt(list.ResourceVersion, 10, 64); now <= before {
		t.Errorf("version %d, after %d was given out", now, before)
	}
	found := false
	for _, item := range list.Items {
		found = found || item.UID == kept.UID
		if item.UID == late.UID {
			t.Error("what came after the snapshot is there")
		}
	}
	if !found {
		t.Error("what was there at the snapshot is lost")
	}
}

func TestDamagedArchiveIsRefused(t *testing.T) {
	config := local(t)
	c, _ := start(t, config)
	file := filepath.Join(t.TempDir(), "snapshot")
	if err := SaveSnapshot(t.Context(), config.DataDir, "v1", file); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[bytes.Index(flipped, []byte("EC PRIVATE"))] ^= 1
	for name, data := range map[string][]byte{"a bit": flipped, "the end": whole[:len(whole)/2], "no archive": []byte("hello"), "empty": nil} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "new")
		err := RestoreSnapshot(t.Context(), dir, file, false)
		if err == nil || !errors.Is(err, store.ErrDamaged) && !strings.Contains(err.Error(), "not a snapshot") {
			t.Errorf("%s: %v", name, err)
		}
		wantAbsent(t, dir)
	}
}

// TestDown: a cluster stops when it is asked to; that nothing runs is no error; and --delete removes everything.
func TestDown(t *testing.T) {
	config := local(t)
	config.DataDir = filepath.Join(config.DataDir, "data")
	if stopped, err := Down(t.Context(), config.DataDir, true); stopped != nil || err != nil {
		t.Errorf("nothing there: %v, %v", stopped, err)
	}
	c, _ := start(t, config)
	stopped := make(chan error, 1)
	go func() {
		<-c.StopAsked()
		stopped <- c.Stop(context.Background())
	}()
	process, err := Down(t.Context(), config.DataDir, true)
	if err != nil || process == nil || process.PID != os.Getpid() {
		t.Errorf("%v, %v", process, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	wantAbsent(t, config.DataDir)
}

// TestDownWaitsNoLonger: a process that does not stop is named.
func TestDownWaitsNoLonger(t *testing.T) {
	data, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	c := &Cluster{data: data, times: &timeline{}, stopAsked: make(chan struct{})}
	if err := c.startControl(); err != nil {
		t.Fatal(err)
	}
	defer c.undoAll(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-c.StopAsked()
		cancel()
	}()
	_, err = Down(ctx, data.Path(), true)
	wantError(t, err, strconv.Itoa(os.Getpid()))
}

// TestSupportBundle: of a running and of a stopped cluster; nothing secret that was planted is in it, and what helps is.
func TestSupportBundle(t *testing.T) {
	config := local(t)
	c, client := start(t, config)
	const planted = "pLanTed-vaLue"
	plant(t, client, planted)
	files := unpackBundle(t, config.DataDir)
	for _, name := range []string{"status.json", "goroutines.txt", "metrics.txt", "objects/pods.json", "objects/secrets.json", "machine/kernel.txt"} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if !strings.Contains(files["objects/secrets.json"], `"password-key"`) || !strings.Contains(files["objects/pods.json"], `"VARIABLE"`) {
		t.Error("the names of keys and variables are missing")
	}
	for name, content := range files {
		for _, secret := range []string{planted, base64.StdEncoding.EncodeToString([]byte(planted)), "PRIVATE KEY"} {
			if strings.Contains(content, secret) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files := unpackBundle(t, config.DataDir); !strings.Contains(files["errors.txt"], "no cluster runs") || files["bayplan.json"] == "" {
		t.Errorf("of a stopped cluster: %q", files["errors.txt"])
	}
}

func plant(t *testing.T, client kubernetes.Interface, value string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "planted", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: value}}
	_, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"password-key": []byte(value)}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"config": value}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "hello", Args: []string{"--password=" + value}, Command: []string{value}, Env: []corev1.EnvVar{{Name: "VARIABLE", Value: value}},
	}}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func unpackBundle(t *testing.T, dataDir string) map[string]string {
	t.Helper()
	out := &bytes.Buffer{}
	if err := SupportBundle(t.Context(), dataDir, "v1", out); err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "bayplan-support/")] = string(data)
	}
}
