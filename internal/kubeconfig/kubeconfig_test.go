package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const other = `apiVersion: v1
kind: Config
clusters: [{name: work, cluster: {server: "https://work.example"}}]
users: [{name: me, user: {token: t}}]
contexts: [{name: work, context: {cluster: work, user: me}}]
current-context: work
`

func TestAddAndRemoveLeaveTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{Host: "https://127.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("c"), KeyData: []byte("k")}}
	if err := At(path).Add("bayplan", config); err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "bayplan" || got.Clusters["bayplan"].Server != config.Host || got.Clusters["work"] == nil || got.AuthInfos["me"].Token != "t" {
		t.Errorf("after Add: %+v", got)
	}
	if err := At(path).Remove("bayplan"); err != nil {
		t.Fatal(err)
	}
	got, err = clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.CurrentContext != "" || got.Contexts["bayplan"] != nil || got.Contexts["work"] == nil {
		t.Errorf("after Remove: %+v", got)
	}
}

func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "config")
	if err := At(path).Remove("bayplan"); err != nil {
		t.Errorf("Remove from no file: %v", err)
	}
	if err := At(path).Add("bayplan", &rest.Config{Host: "https://h"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestLinkStays(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if err := At(link).Add("bayplan", &rest.Config{Host: "https://h"}); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(target); !strings.Contains(string(data), "bayplan") {
		t.Error("the target of the link did not change")
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link became a file")
	}
}

func TestDamagedFileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := At(path).Add("bayplan", &rest.Config{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Add: %v, want an error that names the file", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "{" {
		t.Errorf("the file became %q", data)
	}
}

func TestForUser(t *testing.T) {
	t.Setenv("KUBECONFIG", "/a"+string(os.PathListSeparator)+"/b")
	if f, err := ForUser(); err != nil || f.Path != "/a" {
		t.Errorf("with KUBECONFIG: %v, %v", f, err)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("SUDO_USER", "")
	if f, err := ForUser(); err != nil || f.Path != "/home/somebody/.kube/config" {
		t.Errorf("without: %v, %v", f, err)
	}
}
