package volume

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/node/translate"
)

type objects struct{ client kubernetes.Interface }

func (o objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return o.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return o.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (o objects) Services(context.Context, string) ([]*v1.Service, error) { return nil, nil }

type fixture struct {
	*Manager
	t     *testing.T
	api   *fake.Clientset
	clock *clocktesting.FakePassiveClock
	root  string
}

func newFixture(t *testing.T, given ...runtime.Object) *fixture {
	api := fake.NewClientset(given...)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	node := &translate.Node{RootDir: t.TempDir()}
	f := &fixture{New(api, objects{api}, func() *translate.Node { return node }, clock), t, api, clock, node.RootDir}
	t.Cleanup(func() {
		if err := f.Unmount("u"); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) pod(spec string) *v1.Pod {
	f.t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"tier": "web"}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		f.t.Fatal(err)
	}
	return pod
}

func (f *fixture) setUp(pod *v1.Pod) {
	f.t.Helper()
	if err := f.SetUp(f.t.Context(), pod); err != nil {
		f.t.Fatal(err)
	}
}

// content is what a container would see in its i-th mount: files by path.
func (f *fixture) content(pod *v1.Pod, i int) map[string]string {
	f.t.Helper()
	mounts, err := f.Mounts(f.t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[string]string{}
	entries, err := os.ReadDir(mounts[i].HostPath)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(mounts[i].HostPath, e.Name()))
		if err != nil {
			f.t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "ns"} }

func TestConfigMapAndSecret(t *testing.T) {
	f := newFixture(t,
		&v1.ConfigMap{ObjectMeta: named("m"), Data: map[string]string{"a": "1", "b": "2"}, BinaryData: map[string][]byte{"bin": {0, 1}}},
		&v1.Secret{ObjectMeta: named("s"), Data: map[string][]byte{"key": []byte("secret")}},
	)
	pod := f.pod(`
containers: [{name: c, volumeMounts: [{name: m, mountPath: /m}, {name: s, mountPath: /s}]}]
volumes:
- {name: m, configMap: {name: m}}
- {name: s, secret: {secretName: s, defaultMode: 0400, items: [{key: key, path: other}]}}
`)
	f.setUp(pod)
	if got := f.content(pod, 0); got["a"] != "1" || got["bin"] != "\x00\x01" || len(got) != 3 {
		t.Errorf("configMap %q", got)
	}
	if got := f.content(pod, 1); got["other"] != "secret" || len(got) != 1 {
		t.Errorf("secret %q", got)
	}
	info, err := os.Stat(filepath.Join(f.dir("u", &pod.Spec.Volumes[1]), "other"))
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := f.TearDown(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(f.root, "pods", "u", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestUpdateIsAtomic(t *testing.T) {
	f := newFixture(t, &v1.ConfigMap{ObjectMeta: named("m"), Data: map[string]string{"a": "1", "old": "x"}})
	pod := f.pod(`{containers: [{name: c, volumeMounts: [{name: m, mountPath: /m}]}], volumes: [{name: m, configMap: {name: m}}]}`)
	f.setUp(pod)
	dir := f.dir("u", &pod.Spec.Volumes[0])
	before, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil {
		t.Fatal(err)
	}
	f.setUp(pod)
	if same, _ := os.Readlink(filepath.Join(dir, dataLink)); same != before {
		t.Error("an equal payload was written again")
	}
	changed := &v1.ConfigMap{ObjectMeta: named("m"), Data: map[string]string{"a": "2", "new": "y"}}
	if _, err := f.api.CoreV1().ConfigMaps("ns").Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.setUp(pod)
	if got := f.content(pod, 0); got["a"] != "2" || got["new"] != "y" || len(got) != 2 {
		t.Errorf("after the update: %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "..2*")); len(left) != 1 {
		t.Errorf("payloads left: %q", left)
	}
}

func TestMissingObjects(t *testing.T) {
	f := newFixture(t, &v1.ConfigMap{ObjectMeta: named("m"), Data: map[string]string{"a": "1"}})
	for spec, want := range map[string]string{
		`{volumes: [{name: v, configMap: {name: gone}}]}`:                                                       `MountVolume.SetUp failed for volume "v" : configmap "gone" not found`,
		`{volumes: [{name: v, secret: {secretName: gone}}]}`:                                                    `MountVolume.SetUp failed for volume "v" : secret "gone" not found`,
		`{volumes: [{name: v, configMap: {name: m, items: [{key: k, path: k}]}}]}`:                              `configmap references non-existent config key: k`,
		`{volumes: [{name: v, configMap: {name: m, items: [{key: a, path: ../../x}]}}]}`:                        `invalid path "../../x"`,
		`{volumes: [{name: v, nfs: {server: s, path: /p}}]}`:                                                    `(nfs) are not supported`,
		`{volumes: [{name: v, persistentVolumeClaim: {claimName: gone}}]}`:                                      `persistentvolumeclaim "gone" not found`,
		`{volumes: [{name: v, hostPath: {path: /nowhere, type: Directory}}]}`:                                   `/nowhere is not a directory`,
		`{volumes: [{name: v, hostPath: {path: /etc, type: File}}]}`:                                            `/etc is not a file`,
		`{volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: s, keyType: ECDSAP256}}]}}]}`: `service account of the pod`,
	} {
		err := f.SetUp(t.Context(), f.pod(spec))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", spec, err, want)
		}
	}
	f.setUp(f.pod(`{volumes: [{name: v, configMap: {name: gone, optional: true}}]}`))
}

func TestTokens(t *testing.T) {
	f := newFixture(t)
	asked := 0
	f.api.PrependReactor("create", "serviceaccounts", func(a ktesting.Action) (bool, runtime.Object, error) {
		asked++
		r := a.(ktesting.CreateAction).GetObject().(*authentication.TokenRequest)
		if r.Spec.BoundObjectRef.UID != "u" || *r.Spec.ExpirationSeconds != 1000 {
			t.Errorf("request %+v", r.Spec)
		}
		r.Status = authentication.TokenRequestStatus{Token: "t" + string(rune('0'+asked)), ExpirationTimestamp: metav1.NewTime(f.clock.Now().Add(1000 * time.Second))}
		return true, r, nil
	})
	pod := f.pod(`
serviceAccountName: sa
containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}]
volumes:
- name: v
  projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 1000}}, {downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}
`)
	f.setUp(pod)
	f.setUp(pod)
	if got := f.content(pod, 0); got["token"] != "t1" || got["labels"] != `tier="web"` {
		t.Errorf("content %q", got)
	}
	f.clock.SetTime(f.clock.Now().Add(801 * time.Second))
	f.setUp(pod)
	if got := f.content(pod, 0); got["token"] != "t2" {
		t.Errorf("after 80 %% of its time: %q", got)
	}
}

func TestClaim(t *testing.T) {
	dir := t.TempDir()
	f := newFixture(t,
		&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "ns", UID: "c1"},
			Spec: v1.PersistentVolumeClaimSpec{VolumeName: "pv"}, Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound}},
		&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: v1.PersistentVolumeSpec{
			ClaimRef: &v1.ObjectReference{UID: "c1"}, PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: dir}}}},
	)
	pod := f.pod(`{containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: data, readOnly: true}}]}`)
	f.setUp(pod)
	mounts, err := f.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err != nil || mounts[0].HostPath != dir || !mounts[0].Readonly {
		t.Errorf("mounts %v, %v", mounts, err)
	}
}

func TestSubPathRefusals(t *testing.T) {
	f := newFixture(t)
	for mount, want := range map[string]string{
		`{name: v, mountPath: /v, subPath: ../x}`:              "must be relative",
		`{name: v, mountPath: /v, subPath: /etc}`:              "must be relative",
		`{name: v, mountPath: /v, subPathExpr: "$(UNKNOWN)"}`:  "missing variables",
		`{name: v, mountPath: /v, subPathExpr: "a/$(EVIL)/b"}`: "must be relative",
		`{name: other, mountPath: /v}`:                         `no volume "other"`,
	} {
		pod := f.pod(`{containers: [{name: c, volumeMounts: [` + mount + `]}], volumes: [{name: v, emptyDir: {}}]}`)
		f.setUp(pod)
		_, err := f.Mounts(t.Context(), pod, &pod.Spec.Containers[0], map[string]string{"EVIL": "../../.."})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", mount, err, want)
		}
	}
}

// Whatever paths a payload has, what is written stays in the volume, and what is refused is not written.
func TestPayloadStaysInside(t *testing.T) {
	root := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		base := filepath.Join(root, "case")
		if err := os.RemoveAll(base); err != nil {
			rt.Fatal(err)
		}
		dir := filepath.Join(base, "volume")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		path := rapid.StringMatching(`[a./]{1,8}`).Draw(rt, "path")
		err := writePayload(dir, files{path: {[]byte("x"), 0o644}}, nil, time.Unix(int64(n), 0))
		if entries, _ := os.ReadDir(base); len(entries) != 1 {
			rt.Fatalf("%q led out of the volume: %v", path, entries)
		}
		if err == nil {
			if data, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(data) != "x" {
				rt.Fatalf("%q was taken but can't be read: %v", path, err)
			}
		}
	})
}
