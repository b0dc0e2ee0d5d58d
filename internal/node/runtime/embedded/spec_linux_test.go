package embedded

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/testing/protocmp"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"
)

func TestCommand(t *testing.T) {
	entrypoint, args := []string{"/e", "x"}, []string{"a", "b"}
	for name, test := range map[string]struct {
		image         v1.Config
		command, args []string
		want          string
	}{
		"image's":               {v1.Config{Entrypoint: entrypoint, Cmd: args}, nil, nil, "/e x a b"},
		"arguments":             {v1.Config{Entrypoint: entrypoint, Cmd: args}, nil, []string{"c"}, "/e x c"},
		"command":               {v1.Config{Entrypoint: entrypoint, Cmd: args}, []string{"/c"}, nil, "/c"},
		"command and arguments": {v1.Config{Entrypoint: entrypoint, Cmd: args}, []string{"/c"}, []string{"d"}, "/c d"},
		"no entrypoint":         {v1.Config{Cmd: args}, nil, nil, "a b"},
		"nothing":               {v1.Config{}, nil, nil, "no command is given, neither by the container nor by its image"},
	} {
		c := &container{image: image.Image{Config: test.image}, config: &cri.ContainerConfig{Command: test.command, Args: test.args}}
		got, err := command(c)
		text := strings.Join(got, " ")
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

func TestStopSignal(t *testing.T) {
	for name, test := range map[string]struct {
		image string
		pod   cri.Signal
		want  unix.Signal
	}{
		"default":         {"", 0, unix.SIGTERM},
		"image's":         {"SIGQUIT", 0, unix.SIGQUIT},
		"without SIG":     {"quit", 0, unix.SIGQUIT},
		"number":          {"10", 0, unix.SIGUSR1},
		"nonsense":        {"SIGNOTHING", 0, unix.SIGTERM},
		"the pod's first": {"SIGQUIT", cri.Signal_SIGNAL_SIGUSR2, unix.SIGUSR2},
	} {
		c := &container{image: image.Image{Config: v1.Config{StopSignal: test.image}}, config: &cri.ContainerConfig{StopSignal: test.pod}}
		if got := stopSignal(c); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestCapabilities(t *testing.T) {
	m := &machine{bounding: []string{"CAP_CHOWN", "CAP_KILL", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"}}
	for name, test := range map[string]struct {
		privileged bool
		add, drop  []string
		want       string
	}{
		"default":             {want: "CAP_CHOWN CAP_KILL"},
		"privileged":          {privileged: true, want: "CAP_CHOWN CAP_KILL CAP_NET_ADMIN CAP_SYS_ADMIN"},
		"all":                 {add: []string{"ALL"}, want: "CAP_CHOWN CAP_KILL CAP_NET_ADMIN CAP_SYS_ADMIN"},
		"all but one":         {add: []string{"all"}, drop: []string{"SYS_ADMIN"}, want: "CAP_CHOWN CAP_KILL CAP_NET_ADMIN"},
		"only one":            {add: []string{"CAP_NET_ADMIN"}, drop: []string{"ALL"}, want: "CAP_NET_ADMIN"},
		"none":                {drop: []string{"ALL"}, want: ""},
		"one less":            {drop: []string{"KILL"}, want: "CAP_CHOWN"},
		"not to be had":       {add: []string{"SYS_RESOURCE"}, want: "capability CAP_SYS_RESOURCE cannot be given: this process does not have it"},
		"unknown":             {add: []string{"FLY"}, want: "capability CAP_FLY is unknown"},
		"dropping what isn't": {drop: []string{"FLY"}, want: "CAP_CHOWN CAP_KILL"},
	} {
		got, err := m.capabilities(&cri.LinuxContainerSecurityContext{
			Privileged: test.privileged, Capabilities: &cri.Capability{AddCapabilities: test.add, DropCapabilities: test.drop},
		})
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = strings.Join(got.Bounding, " ")
		}
		if text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

func TestRuntimeDefaultProfile(t *testing.T) {
	allows := func(profile *specs.LinuxSeccomp, call string) bool {
		return slices.ContainsFunc(profile.Syscalls, func(s specs.LinuxSyscall) bool {
			return s.Action == specs.ActAllow && len(s.Args) == 0 && slices.Contains(s.Names, call)
		})
	}
	plain, admin := runtimeDefault(defaultCapabilities), runtimeDefault([]string{"CAP_SYS_ADMIN"})
	for _, call := range []string{"read", "execve", "futex", "openat2", "chroot"} {
		if !allows(plain, call) {
			t.Errorf("%s is refused", call)
		}
	}
	for _, call := range []string{"mount", "bpf", "keyctl", "add_key", "kexec_load", "io_uring_setup", "userfaultfd", "reboot", "setns", "unshare", "clone", "clone3", "init_module", "swapon"} {
		if allows(plain, call) {
			t.Errorf("%s is allowed", call)
		}
	}
	if !allows(admin, "mount") || !allows(admin, "clone3") || allows(admin, "reboot") {
		t.Error("CAP_SYS_ADMIN does not have what goes with it")
	}
}

func TestResources(t *testing.T) {
	v1, v2 := &machine{hierarchies: []string{"/sys/fs/cgroup/pids"}}, &machine{unified: true}
	given := &cri.LinuxContainerResources{CpuShares: 2, MemoryLimitInBytes: 100, Unified: map[string]string{"pids.max": "7", "memory.oom.group": "1"}}
	if got := v1.resources(given); got.Unified != nil || *got.Pids.Limit != 7 || *got.CPU.Shares != 2 || got.CPU.Quota != nil || *got.Memory.Limit != 100 {
		t.Errorf("v1: %+v", got)
	}
	if got := v2.resources(given); got.Unified["memory.oom.group"] != "1" || got.Pids != nil {
		t.Errorf("v2: %+v", got)
	}
	if got := v1.resources(nil); len(got.Devices) != 1 || got.Devices[0].Allow {
		t.Errorf("no limits: %+v", got)
	}
}

func TestMergeResources(t *testing.T) {
	old := &cri.LinuxContainerResources{
		CpuShares: 2, CpuQuota: 5, Unified: map[string]string{"a": "1", "b": "2"}, HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 1}},
	}
	given := &cri.LinuxContainerResources{CpuQuota: -1, MemoryLimitInBytes: 9, Unified: map[string]string{"b": "3"}}
	want := &cri.LinuxContainerResources{
		CpuShares: 2, CpuQuota: -1, MemoryLimitInBytes: 9, Unified: map[string]string{"a": "1", "b": "3"}, HugepageLimits: []*cri.HugepageLimit{{PageSize: "2MB", Limit: 1}},
	}
	if diff := cmp.Diff(want, mergeResources(old, given), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(given, mergeResources(nil, given), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestOOMScoreIsClamped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{oomScoreFloor: rapid.IntRange(-1000, 1000).Draw(t, "floor")}
		wanted := rapid.IntRange(-1000, 1000).Draw(t, "wanted")
		got := m.clampOOMScore(wanted)
		if got < m.oomScoreFloor || got < wanted || got != wanted && got != m.oomScoreFloor {
			t.Fatalf("got %d", got)
		}
	})
}

func TestResolveUser(t *testing.T) {
	rootfs := t.TempDir()
	outside := filepath.Join(t.TempDir(), "passwd")
	for path, text := range map[string]string{
		filepath.Join(rootfs, "etc/passwd"): "root:x:0:0:root:/root:/bin/sh\nbroken\nbob:x:7:8::/:\nodd:x:many:8::/:\n",
		filepath.Join(rootfs, "etc/group"):  "root:x:0:\nwheel:x:10:root,bob\naudio:x:11:bob\n",
		outside:                             "eve:x:666:666::/:\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		image string
		pod   *cri.LinuxContainerSecurityContext
		want  *specs.User
		err   string
	}{
		"nothing":             {"", nil, &specs.User{AdditionalGids: []uint32{10}}, ""},
		"name":                {"bob", nil, &specs.User{UID: 7, GID: 8, AdditionalGids: []uint32{10, 11}}, ""},
		"number of a name":    {"7", nil, &specs.User{UID: 7, GID: 8, AdditionalGids: []uint32{10, 11}}, ""},
		"name and group":      {"bob:audio", nil, &specs.User{UID: 7, GID: 11, AdditionalGids: []uint32{10, 11}}, ""},
		"numbers":             {"500:600", nil, &specs.User{UID: 500, GID: 600}, ""},
		"the pod's user":      {"bob", &cri.LinuxContainerSecurityContext{RunAsUser: &cri.Int64Value{Value: 500}}, &specs.User{UID: 500}, ""},
		"no such user":        {"nobody", nil, nil, `user "nobody" is not in the image's /etc/passwd`},
		"a user of no id":     {"odd", nil, nil, `user "odd" is not in the image's /etc/passwd`},
		"no such group":       {"bob:none", nil, nil, `group "none" is not in the image's /etc/group`},
		"groups are a set":    {"bob", &cri.LinuxContainerSecurityContext{SupplementalGroups: []int64{11, 3}}, &specs.User{UID: 7, GID: 8, AdditionalGids: []uint32{3, 10, 11}}, ""},
		"user of the machine": {"daemon", nil, nil, `user "daemon" is not in the image's /etc/passwd`},
	} {
		got, err := resolveUser(rootfs, test.pod, test.image)
		if test.err != "" {
			if err == nil || err.Error() != test.err {
				t.Errorf("%s: %v, want %s", name, err, test.err)
			}
			continue
		}
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if err := os.Remove(filepath.Join(rootfs, "etc/passwd")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(rootfs, "etc/passwd")); err != nil {
		t.Fatal(err)
	}
	if got, err := resolveUser(rootfs, nil, "eve"); err == nil {
		t.Errorf("a symbolic link led out of the image: %v", got)
	}
}

func TestEnvironment(t *testing.T) {
	s := &sandbox{config: &cri.PodSandboxConfig{Hostname: "h"}}
	c := &container{
		image:  image.Image{Config: v1.Config{Env: []string{"A=1", "PATH=/p", "HOSTNAME=image"}}},
		config: &cri.ContainerConfig{Tty: true, Envs: []*cri.KeyValue{{Key: "A", Value: []byte("2")}, {Key: "B", Value: []byte("x=y")}, {Key: "A", Value: []byte("3")}}},
	}
	want := []string{"PATH=/p", "HOSTNAME=image", "TERM=xterm", "A=3", "B=x=y"}
	if diff := cmp.Diff(want, environment(s, c)); diff != "" {
		t.Error(diff)
	}
}

func FuzzResolveUser(f *testing.F) {
	f.Add("root:x:0:0:::\n", "root:x:0:root\n", "root")
	f.Add("a:x:1:2", "g:x:3:a,b", "a:g")
	f.Fuzz(func(t *testing.T, passwd, group, user string) {
		rootfs := t.TempDir()
		if err := os.Mkdir(filepath.Join(rootfs, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile(filepath.Join(rootfs, "etc/passwd"), []byte(passwd), 0o644)
		_ = os.WriteFile(filepath.Join(rootfs, "etc/group"), []byte(group), 0o644)
		got, err := resolveUser(rootfs, nil, user)
		if (got == nil) == (err == nil) {
			t.Fatalf("%v, %v", got, err)
		}
	})
}
