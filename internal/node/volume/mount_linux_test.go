package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
}

func TestMemoryVolume(t *testing.T) {
	needRoot(t)
	f := newFixture(t)
	pod := f.pod(`{containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]}`)
	f.setUp(pod)
	t.Cleanup(func() {
		if err := f.Unmount("u"); err != nil {
			t.Error(err)
		}
	})
	f.setUp(pod) // a second time changes nothing
	dir := f.dir("u", &pod.Spec.Volumes[0])
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || int64(fs.Blocks)*fs.Bsize != 1<<20 {
		t.Errorf("file system %+v, %v; want a tmpfs of 1 MiB", fs, err)
	}
	if err := f.TearDown(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestSecretsAreNotOnDisk(t *testing.T) {
	needRoot(t)
	f := newFixture(t,
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}, Data: map[string][]byte{"key": []byte("value")}},
		&v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "ns"}, Data: map[string]string{"key": "value"}},
	)
	pod := f.pod(`
containers: [{name: c}]
volumes:
- {name: secret, secret: {secretName: s}}
- {name: projected, projected: {sources: [{secret: {name: s}}]}}
- {name: map, configMap: {name: m}}
`)
	for range 2 { // the second time it is refreshed
		f.setUp(pod)
	}
	for i, memory := range []bool{true, true, false} {
		dir := f.dir("u", &pod.Spec.Volumes[i])
		if data, err := os.ReadFile(filepath.Join(dir, "key")); err != nil || string(data) != "value" {
			t.Errorf("%s: %q, %v", dir, data, err)
		}
		if mounted, err := isMountPoint(dir); mounted != memory || err != nil {
			t.Errorf("%s is mounted: %t, %v; want %t", dir, mounted, err, memory)
		}
	}
	if mounts, err := mountsBelow(f.root); len(mounts) != 2 || err != nil {
		t.Errorf("mounts %q, %v; want two", mounts, err)
	}
	if err := f.TearDown(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if mounts, err := mountsBelow(f.root); len(mounts) != 0 || err != nil {
		t.Errorf("left behind: %q, %v", mounts, err)
	}
}

func TestSubPathIsPinned(t *testing.T) {
	needRoot(t)
	f := newFixture(t)
	pod := f.pod(`
containers: [{name: c, volumeMounts: [{name: v, mountPath: /v, subPath: a/b}]}]
volumes: [{name: v, emptyDir: {}}]
`)
	f.setUp(pod)
	t.Cleanup(func() {
		if err := f.Unmount("u"); err != nil {
			t.Error(err)
		}
	})
	mounts, err := f.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	volume := f.dir("u", &pod.Spec.Volumes[0])
	if err := os.WriteFile(filepath.Join(volume, "a/b/file"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	// A container swaps the directory for a link to the host's files: the mount still shows what was opened.
	if err := os.Rename(filepath.Join(volume, "a/b"), filepath.Join(volume, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(volume, "a/b")); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(mounts[0].HostPath, "file")); err != nil || string(data) != "x" {
		t.Errorf("the mount shows %q, %v", data, err)
	}
	if _, err := f.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil); err == nil || !strings.Contains(err.Error(), "leads out of the volume") {
		t.Errorf("a link out of the volume: %v", err)
	}
	if err := f.TearDown(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/etc/passwd"); err != nil {
		t.Fatal("the host's files were touched")
	}
}

func TestSubPathLinkInside(t *testing.T) {
	needRoot(t)
	f := newFixture(t)
	pod := f.pod(`{containers: [{name: c, volumeMounts: [{name: v, mountPath: /v, subPath: link}]}], volumes: [{name: v, emptyDir: {}}]}`)
	f.setUp(pod)
	volume := f.dir("u", &pod.Spec.Volumes[0])
	if err := os.Mkdir(filepath.Join(volume, "real"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(volume, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Mounts(t.Context(), pod, &pod.Spec.Containers[0], nil); err != nil {
		t.Errorf("a link within the volume: %v", err)
	}
	if err := f.TearDown(t.Context(), "u"); err != nil {
		t.Fatal(err)
	}
}

func TestHugepageVolume(t *testing.T) {
	needRoot(t)
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil || !strings.Contains(string(known), "hugetlbfs") {
		t.Skip("this kernel has no huge pages")
	}
	f := newFixture(t)
	for _, spec := range []string{
		`{containers: [{name: c}], volumes: [{name: v, emptyDir: {medium: HugePages-2Mi}}]}`,
		`{containers: [{name: c, resources: {requests: {hugepages-2Mi: 2Mi}, limits: {hugepages-2Mi: 2Mi}}}], volumes: [{name: v, emptyDir: {medium: HugePages}}]}`,
	} {
		pod := f.pod(spec)
		f.setUp(pod)
		var fs unix.Statfs_t
		if err := unix.Statfs(f.dir("u", &pod.Spec.Volumes[0]), &fs); err != nil || fs.Type != unix.HUGETLBFS_MAGIC || fs.Bsize != 2<<20 {
			t.Errorf("%s: file system %+v, %v", spec, fs, err)
		}
		if err := f.TearDown(t.Context(), "u"); err != nil {
			t.Fatal(err)
		}
	}
	pod := f.pod(`{containers: [{name: c}], volumes: [{name: v, emptyDir: {medium: HugePages}}]}`)
	if err := f.SetUp(t.Context(), pod); err == nil {
		t.Error("huge pages of no size were mounted")
	}
}
