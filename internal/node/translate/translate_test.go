package translate

import (
	"context"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func podOf(t testing.TB, spec string) *v1.Pod {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", Labels: map[string]string{"a": "1", "b": "x\"y"}}}
	if err := yaml.UnmarshalStrict([]byte(spec), &pod.Spec); err != nil {
		t.Fatal(err)
	}
	return pod
}

func TestExpand(t *testing.T) {
	vars := map[string]string{"A": "1", "EMPTY": ""}
	lookup := func(n string) (string, bool) { v, ok := vars[n]; return v, ok }
	for in, want := range map[string]string{
		"plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$$(A)": "$(A)", "$$$(A)": "$1", "$(B)": "$(B)", "$(EMPTY)|": "|", "$(A": "$(A",
		"$": "$", "$x": "$x", "$()": "$()", "$$": "$", "a$$b": "a$b",
	} {
		if got := Expand(in, lookup); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

// Text without a dollar sign is never changed, and expansion of what was escaped gives the text back.
func TestExpandEscape(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("$()aA "))).Draw(t, "text")
		got := Expand(strings.ReplaceAll(s, "$", "$$"), func(string) (string, bool) { return "!", true })
		if got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

func FuzzExpand(f *testing.F) {
	f.Add("$(A)$$(B)")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Expand(s, func(string) (string, bool) { return "", false }); len(got) > len(s) {
			t.Errorf("%q grew to %q without any value", s, got)
		}
	})
}

func TestShares(t *testing.T) {
	for milli, want := range map[int64]int64{0: 2, 1: 2, 2: 2, 100: 102, 1000: 1024, 3000: 3072, 1 << 40: 262144} {
		if got := Shares(milli); got != want {
			t.Errorf("Shares(%d) = %d, want %d", milli, got, want)
		}
	}
	if Shares(3000) != 3*Shares(1000) {
		t.Error("requests of 1 and 3 cores must share contended CPU time 1 to 3")
	}
	for milli, want := range map[int64]int64{0: 0, 1: 1000, 10: 1000, 200: 20000, 1500: 150000} {
		if got := Quota(milli); got != want {
			t.Errorf("Quota(%d) = %d, want %d", milli, got, want)
		}
	}
}

func TestOOMScoreAdj(t *testing.T) {
	const capacity = 4 << 30
	for name, c := range map[string]struct {
		spec string
		want int64
	}{
		"best effort": {`{containers: [{name: a}]}`, 1000},
		"guaranteed":  {`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1, memory: 1Gi}}}]}`, -997},
		"a quarter":   {`{containers: [{name: a, resources: {requests: {memory: 1Gi}}}]}`, 750},
		"all":         {`{containers: [{name: a, resources: {requests: {memory: 4Gi}}}]}`, 3},
		"hardly any":  {`{containers: [{name: a, resources: {requests: {memory: 1Mi}}}]}`, 999},
		"cpu only":    {`{containers: [{name: a, resources: {requests: {cpu: 1}}}]}`, 999},
		"critical":    {`{priority: 2000001000, containers: [{name: a}]}`, -997},
	} {
		pod := podOf(t, c.spec)
		if got := OOMScoreAdj(pod, &pod.Spec.Containers[0], capacity); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	pod := podOf(t, `{initContainers: [{name: s, restartPolicy: Always}], containers: [{name: a, resources: {requests: {memory: 1Gi}}}]}`)
	if got := OOMScoreAdj(pod, &pod.Spec.InitContainers[0], capacity); got != 750 {
		t.Errorf("a sidecar has %d, want that of the container it serves, 750", got)
	}
}

// Whatever is requested, a burstable container is taken after best-effort ones and before guaranteed ones.
func TestBurstableBetween(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := &v1.Container{Name: "a", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			v1.ResourceMemory: *resource.NewQuantity(rapid.Int64Range(1, 1<<42).Draw(rt, "request"), resource.BinarySI),
		}}}
		pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{*c}}}
		got := OOMScoreAdj(pod, c, rapid.Int64Range(1, 1<<42).Draw(rt, "capacity"))
		if got <= oomGuaranteed || got >= oomBestEffort {
			rt.Fatalf("score %d", got)
		}
	})
}

func TestCgroups(t *testing.T) {
	for spec, want := range map[string]string{
		`{containers: [{name: a}]}`:                                                        "/bayplan/c/n/besteffort/podu",
		`{containers: [{name: a, resources: {requests: {cpu: 1}}}]}`:                       "/bayplan/c/n/burstable/podu",
		`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}]}`:            "/bayplan/c/n/podu",
		`{containers: [{name: a, resources: {limits: {cpu: 1}}}]}`:                         "/bayplan/c/n/burstable/podu",
		`{resources: {limits: {cpu: 1, memory: 1Gi}}, containers: [{name: a}]}`:            "/bayplan/c/n/podu",
		`{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b}]}`: "/bayplan/c/n/burstable/podu",
	} {
		if got := CgroupParent("bayplan/c/n", podOf(t, spec)); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	r := PodResources(podOf(t, `{containers: [{name: a, resources: {limits: {cpu: 1, memory: 1Gi}}}, {name: b, resources: {limits: {cpu: 500m}}}]}`))
	if r.CpuQuota != 150000 || r.MemoryLimitInBytes != 0 {
		t.Errorf("pod resources %v: want a quota of 1.5 cores, and no memory limit because b has none", r)
	}
}

// objects are the Sources of tests.
type objects struct {
	maps     map[string]map[string]string
	secrets  map[string]map[string][]byte
	services []*v1.Service
}

func (o objects) ConfigMap(_ context.Context, _, name string) (*v1.ConfigMap, error) {
	if data, ok := o.maps[name]; ok {
		return &v1.ConfigMap{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("configmaps"), name)
}

func (o objects) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if data, ok := o.secrets[name]; ok {
		return &v1.Secret{Data: data}, nil
	}
	return nil, apierrors.NewNotFound(v1.Resource("secrets"), name)
}

func (o objects) Services(_ context.Context, namespace string) ([]*v1.Service, error) {
	var out []*v1.Service
	for _, s := range o.services {
		if s.Namespace == namespace {
			out = append(out, s)
		}
	}
	return out, nil
}

func TestEnvironment(t *testing.T) {
	src := objects{
		maps:    map[string]map[string]string{"m": {"k": "v", "z": "last"}},
		secrets: map[string]map[string][]byte{"s": {"password": []byte("secret")}},
		services: []*v1.Service{
			{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes", Namespace: "default"}, Spec: v1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []v1.ServicePort{{Name: "https", Port: 443}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "headless", Namespace: "ns"}, Spec: v1.ServiceSpec{ClusterIP: "None", Ports: []v1.ServicePort{{Port: 1}}}},
		},
	}
	pod := podOf(t, `
serviceAccountName: sa
nodeName: n1
containers:
- name: a
  resources: {limits: {cpu: 1500m}, requests: {memory: 64Mi}}
  envFrom:
  - {prefix: M_, configMapRef: {name: m}}
  - {configMapRef: {name: missing, optional: true}}
  env:
  - {name: A, value: one}
  - {name: B, value: "$(A) $(M_k) $(LATER) $$(A)"}
  - {name: LATER, value: x}
  - {name: M_z, value: replaced}
  - {name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a']"}}}
  - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
  - {name: MEM, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}
  - {name: NODE_MEM, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
  - {name: PASSWORD, valueFrom: {secretKeyRef: {name: s, key: password}}}
  - {name: NONE, valueFrom: {secretKeyRef: {name: s, key: nothing, optional: true}}}
`)
	values := Values{PodIPs: []string{"10.1.0.5"}, Allocatable: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}}
	list, _, err := Environment(t.Context(), src, pod, &pod.Spec.Containers[0], values)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kv := range list {
		if !strings.HasPrefix(kv.Key, "KUBERNETES_") {
			got = append(got, kv.Key+"="+string(kv.Value))
		}
	}
	want := []string{"M_k=v", "M_z=replaced", "A=one", "B=one v $(LATER) $(A)", "LATER=x", "IP=10.1.0.5", "LABEL=1", "CPU=2", "MEM=64", "NODE_MEM=1073741824", "PASSWORD=secret"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(list)-len(got) != 8 {
		t.Errorf("%d variables of the Service kubernetes, want 8", len(list)-len(got))
	}
}

func TestEnvironmentErrors(t *testing.T) {
	src := objects{maps: map[string]map[string]string{"m": {}}}
	for env, want := range map[string]string{
		`{name: A, valueFrom: {configMapKeyRef: {name: gone, key: k}}}`: `configmap "gone" not found`,
		`{name: A, valueFrom: {secretKeyRef: {name: gone, key: k}}}`:    `secret "gone" not found`,
		`{name: A, valueFrom: {configMapKeyRef: {name: m, key: k}}}`:    `couldn't find key k in ConfigMap ns/m`,
		`{name: A, valueFrom: {fieldRef: {fieldPath: spec.nothing}}}`:   `unsupported fieldPath: spec.nothing`,
	} {
		pod := podOf(t, `{containers: [{name: a, env: [`+env+`]}]}`)
		_, _, err := Environment(t.Context(), src, pod, &pod.Spec.Containers[0], Values{})
		if err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", env, err, want)
		}
	}
}

func TestDNS(t *testing.T) {
	n := &Node{ClusterDNS: []string{"10.96.0.10"}, ClusterDomain: "cluster.local", HostResolv: ParseResolv("# a comment\nsearch corp.example.\nnameserver 192.0.2.1\noptions rotate\n")}
	for spec, want := range map[string]string{
		`{}`:                   "search ns.svc.cluster.local svc.cluster.local cluster.local corp.example\nnameserver 10.96.0.10\noptions ndots:5\n",
		`{dnsPolicy: Default}`: "search corp.example\nnameserver 192.0.2.1\noptions rotate\n",
		`{dnsPolicy: ClusterFirst, hostNetwork: true}`: "search corp.example\nnameserver 192.0.2.1\noptions rotate\n",
		`{dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.7], searches: [a.b], options: [{name: ndots, value: "2"}, {name: edns0}]}}`: "search a.b\nnameserver 192.0.2.7\noptions ndots:2 edns0\n",
		`{dnsConfig: {options: [{name: ndots, value: "1"}]}}`:                                                                            "search ns.svc.cluster.local svc.cluster.local cluster.local corp.example\nnameserver 10.96.0.10\noptions ndots:1\n",
	} {
		if got := DNS(n, podOf(t, spec)).String(); got != want {
			t.Errorf("%s: %q, want %q", spec, got, want)
		}
	}
	if len(n.HostResolv.Options) != 1 || n.HostResolv.Options[0] != "rotate" {
		t.Error("the host's configuration was changed")
	}
}

func FuzzParseResolv(f *testing.F) {
	f.Add("nameserver 1.2.3.4\nsearch a b\noptions ndots:5\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := ParseResolv(text)
		if again := ParseResolv(r.String()); !slices.Equal(again.Servers, r.Servers) {
			t.Errorf("%q is read as %v, and that as %v", text, r, again)
		}
	})
}

func TestHosts(t *testing.T) {
	n := &Node{Hostname: "n1", ClusterDomain: "cluster.local"}
	pod := podOf(t, `{hostname: web, subdomain: sub, hostAliases: [{ip: 192.0.2.3, hostnames: [x, z]}]}`)
	got := Hosts(n, pod, []string{"10.1.0.5"}, "")
	for _, want := range []string{"# Kubernetes-managed hosts file.\n", "10.1.0.5\tweb.sub.ns.svc.cluster.local\tweb\n", "# Entries added by HostAliases.\n192.0.2.3\tx\tz\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	long := podOf(t, `{}`)
	long.Name = strings.Repeat("a", 62) + "-bcd"
	if name, _ := Hostname(n, long); name != strings.Repeat("a", 62) {
		t.Errorf("hostname %q", name)
	}
}

func TestSecurity(t *testing.T) {
	n := &Node{RootDir: "/root"}
	pod := podOf(t, `
securityContext: {runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4], seccompProfile: {type: RuntimeDefault}}
shareProcessNamespace: true
containers:
- name: a
  securityContext: {runAsUser: 10, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {add: [NET_ADMIN], drop: [ALL]}}
- name: b
  securityContext: {privileged: true, procMount: Default, seccompProfile: {type: Localhost, localhostProfile: p.json}}
`)
	a := security(n, pod, &pod.Spec.Containers[0], "")
	if a.RunAsUser.Value != 10 || a.RunAsGroup.Value != 2 || !slices.Equal(a.SupplementalGroups, []int64{4, 3}) || !a.NoNewPrivs || !a.ReadonlyRootfs ||
		a.Seccomp.ProfileType != cri.SecurityProfile_RuntimeDefault || a.NamespaceOptions.Pid != cri.NamespaceMode_POD || len(a.MaskedPaths) == 0 {
		t.Errorf("a: %v", a)
	}
	b := security(n, pod, &pod.Spec.Containers[1], "target")
	if b.RunAsUser.Value != 1 || !b.Privileged || len(b.MaskedPaths) > 0 || b.Seccomp.ProfileType != cri.SecurityProfile_Unconfined ||
		b.NamespaceOptions.Pid != cri.NamespaceMode_TARGET || b.NamespaceOptions.TargetId != "target" {
		t.Errorf("b: %v", b)
	}
}

func TestVerifyNonRoot(t *testing.T) {
	root, user := &cri.Image{Uid: &cri.Int64Value{}}, &cri.Image{Uid: &cri.Int64Value{Value: 5}}
	for spec, c := range map[string]struct {
		image *cri.Image
		want  string
	}{
		`{containers: [{name: a}]}`:                                                                                     {root, ""},
		`{securityContext: {runAsNonRoot: true}, containers: [{name: a}]}`:                                              {root, "image will run as root"},
		`{securityContext: {runAsNonRoot: true, runAsUser: 7}, containers: [{name: a}]}`:                                {root, ""},
		`{securityContext: {runAsNonRoot: true, runAsUser: 0}, containers: [{name: a}]}`:                                {user, "runAsUser breaks non-root policy"},
		`{containers: [{name: a, securityContext: {runAsNonRoot: true}}]}`:                                              {user, ""},
		`{securityContext: {runAsNonRoot: true, supplementalGroups: []}, containers: [{name: a}]}`:                      {&cri.Image{Username: "web"}, "non-numeric user (web)"},
		`{securityContext: {runAsNonRoot: true}, containers: [{name: a, securityContext: {runAsNonRoot: false}}]}`:      {root, ""},
		`{securityContext: {runAsNonRoot: true, fsGroup: 1}, containers: [{name: a, securityContext: {runAsUser: 3}}]}`: {root, ""},
	} {
		pod := podOf(t, spec)
		err := VerifyNonRoot(pod, &pod.Spec.Containers[0], c.image)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", spec, err, c.want)
		}
	}
}

func TestSandboxAndContainer(t *testing.T) {
	n := &Node{RootDir: "/data", CgroupRoot: "bayplan/c/n", Hostname: "n1", Capacity: v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")}}
	pod := podOf(t, `
hostname: web
containers:
- name: a
  image: "app:1"
  command: ["/app", "$(X)"]
  ports: [{containerPort: 80, hostPort: 8080, protocol: UDP}]
  lifecycle: {stopSignal: SIGUSR1}
  resources: {limits: {cpu: 500m, memory: 64Mi}}
`)
	s := Sandbox(n, pod, 2)
	if s.Metadata.Attempt != 2 || s.Hostname != "web" || s.LogDirectory != "/data/logs/ns_p_u" || s.Labels[LabelPodUID] != "u" ||
		s.PortMappings[0].HostPort != 8080 || s.PortMappings[0].Protocol != cri.Protocol_UDP || s.Linux.CgroupParent != "/bayplan/c/n/podu" {
		t.Errorf("sandbox %v", s)
	}
	c := Container(n, pod, &pod.Spec.Containers[0], ContainerInput{Attempt: 3, ImageRef: "sha256:1", Values: map[string]string{"X": "y"}, Granted: pod.Spec.Containers[0].Resources})
	if c.Command[1] != "y" || c.Args != nil || c.LogPath != "a/3.log" || c.StopSignal != cri.Signal_SIGNAL_SIGUSR1 || c.Image.UserSpecifiedImage != "app:1" {
		t.Errorf("container %v", c)
	}
	if r := c.Linux.Resources; r.CpuShares != 512 || r.CpuQuota != 50000 || r.MemoryLimitInBytes != 64<<20 || r.OomScoreAdj != -997 {
		t.Errorf("resources %v", r)
	}
	if got := StopSignalOf(c.StopSignal); got == nil || *got != "SIGUSR1" {
		t.Errorf("stop signal %v", got)
	}
	m := MetaOf(c.Labels, c.Annotations)
	if m.PodUID != "u" || m.Container != "a" || m.Grace != 30 {
		t.Errorf("read back as %+v", m)
	}
}

func BenchmarkContainer(b *testing.B) {
	n := &Node{RootDir: "/data", CgroupRoot: "bayplan/c/n"}
	pod := podOf(b, `{containers: [{name: a, image: x, command: ["/app"], resources: {limits: {cpu: 500m, memory: 64Mi}}}]}`)
	b.ReportAllocs()
	for b.Loop() {
		Container(n, pod, &pod.Spec.Containers[0], ContainerInput{ImageRef: "sha256:1"})
	}
}
