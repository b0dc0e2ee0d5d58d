package static

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const manifest = `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  hostNetwork: true
  containers:
  - name: c
    image: example.com:5000/web
    ports: [{containerPort: 80}]
    resources: {limits: {cpu: 100m}}
    livenessProbe: {httpGet: {port: 80}, periodSeconds: 3}
`

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.yaml": manifest, "b.yaml": manifest, ".hidden.yaml": manifest, "c.json": `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`,
		"bad.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {nam: x}",
	})
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	pods, err := Read(dir, "N1")
	if len(pods) != 2 || pods[0].Name != "web-n1" || pods[1].Name != "other-n1" {
		t.Fatalf("got %v", pods)
	}
	for _, want := range []string{`bad.yaml: error unmarshaling JSON`, `b.yaml: ` + dir + `/a.yaml has a pod default/web-n1 already`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if pods, err := Read(filepath.Join(dir, "nowhere"), "n1"); pods != nil || err != nil {
		t.Errorf("no directory: %v, %v", pods, err)
	}
}

func TestIdentityAndDefaults(t *testing.T) {
	pod, err := Parse([]byte(manifest), "/etc/web.yaml", "n1")
	if err != nil {
		t.Fatal(err)
	}
	same, _ := Parse([]byte(manifest), "/etc/web.yaml", "n1")
	other, _ := Parse([]byte(manifest+" "), "/etc/web.yaml", "n1")
	elsewhere, _ := Parse([]byte(manifest), "/etc/web.yaml", "n2")
	if pod.UID != same.UID || pod.UID == other.UID || pod.UID == elsewhere.UID || len(pod.UID) != 32 {
		t.Errorf("UIDs %q %q %q %q", pod.UID, same.UID, other.UID, elsewhere.UID)
	}
	if pod.Namespace != "default" || pod.Spec.NodeName != "n1" || !IsStatic(pod) || IsMirror(pod) {
		t.Errorf("identity %+v", pod.ObjectMeta)
	}
	if tolerations := pod.Spec.Tolerations; len(tolerations) != 1 || tolerations[0].Operator != v1.TolerationOpExists || tolerations[0].Effect != v1.TaintEffectNoExecute {
		t.Errorf("tolerations %+v", tolerations)
	}
	c := &pod.Spec.Containers[0]
	if c.ImagePullPolicy != v1.PullAlways || c.Ports[0].HostPort != 80 || c.Ports[0].Protocol != v1.ProtocolTCP || c.Resources.Requests.Cpu().String() != "100m" ||
		c.TerminationMessagePath != "/dev/termination-log" {
		t.Errorf("container %+v", c)
	}
	if p := c.LivenessProbe; p.PeriodSeconds != 3 || p.TimeoutSeconds != 1 || p.FailureThreshold != 3 || p.HTTPGet.Path != "/" || p.HTTPGet.Scheme != "HTTP" {
		t.Errorf("probe %+v", p)
	}
	if pod.Spec.RestartPolicy != v1.RestartPolicyAlways || *pod.Spec.TerminationGracePeriodSeconds != 30 || pod.Spec.DNSPolicy != v1.DNSClusterFirst {
		t.Errorf("spec %+v", pod.Spec)
	}
}

func TestPullPolicy(t *testing.T) {
	for image, want := range map[string]v1.PullPolicy{
		"a": v1.PullAlways, "a:latest": v1.PullAlways, "host:5000/a": v1.PullAlways, "a:1": v1.PullIfNotPresent, "host:5000/a:1": v1.PullIfNotPresent,
		"a@sha256:0": v1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%s: %s, want %s", image, got, want)
		}
	}
}

func TestMirror(t *testing.T) {
	pod, err := Parse([]byte(manifest), "/etc/web.yaml", "n1")
	if err != nil {
		t.Fatal(err)
	}
	m := Mirror(pod, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node"}})
	if !IsMirror(m) || IsStatic(m) || !Mirrors(m, pod) || m.UID != "" || m.Name != pod.Name || m.OwnerReferences[0].UID != "node" {
		t.Errorf("mirror %+v", m.ObjectMeta)
	}
	if IsMirror(pod) {
		t.Error("the pod itself was changed")
	}
	changed, _ := Parse([]byte(manifest+" "), "/etc/web.yaml", "n1")
	if Mirrors(m, changed) {
		t.Error("the mirror shows a pod that its manifest does not have any more")
	}
}

func TestRefused(t *testing.T) {
	for want, text := range map[string]string{
		`it is of the kind "Service" of "v1", not a Pod of v1`:   "apiVersion: v1\nkind: Service",
		"metadata.name and spec.containers must be set":          "apiVersion: v1\nkind: Pod\nmetadata: {name: a}",
		"spec.serviceAccountName: static pods have no service":   "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {serviceAccountName: a, containers: [{name: c}]}",
		"spec.volumes[0] (v): static pods cannot refer to other": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {volumes: [{name: v, secret: {secretName: s}}], containers: [{name: c}]}",
		"variable A of container c: static pods cannot refer to": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}",
		"envFrom of container c: static pods cannot refer to":    "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, envFrom: [{secretRef: {name: s}}]}]}",
	} {
		if _, err := Parse([]byte(text), "f", "n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// FuzzParse: no manifest makes the agent fall over, and what is taken has what the agent relies on.
func FuzzParse(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"lifecycle":{"preStop":{}}}],"volumes":[{}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		pod, err := Parse(data, "f", "n")
		if err != nil {
			return
		}
		if pod.UID == "" || pod.Namespace == "" || pod.Spec.NodeName != "n" || pod.Spec.TerminationGracePeriodSeconds == nil || pod.Spec.RestartPolicy == "" {
			t.Errorf("incomplete: %+v", pod)
		}
	})
}
