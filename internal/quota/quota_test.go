package quota

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func parse[T any](t testing.TB, text string) *T {
	t.Helper()
	obj := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), obj); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return obj
}

func text(used corev1.ResourceList) string {
	var parts []string
	for name, amount := range used {
		if !amount.IsZero() {
			parts = append(parts, fmt.Sprintf("%s=%s", name, amount.String()))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func TestPodUsage(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC)
	for manifest, want := range map[string]string{
		`{spec: {containers: [{name: c}]}}`:                                                                                                                    "count/pods=1 pods=1",
		`{spec: {containers: [{name: c}]}, status: {phase: Succeeded}}`:                                                                                        "count/pods=1",
		`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 30}}`:                                                              "count/pods=1",
		`{metadata: {deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 90}}`:                                                              "count/pods=1 pods=1",
		`{spec: {containers: [{name: c, resources: {requests: {cpu: 1, ephemeral-storage: 1Gi}, limits: {cpu: 2, memory: 1Gi}}}], overhead: {cpu: 500m}}}`:     "count/pods=1 cpu=1500m ephemeral-storage=1Gi limits.cpu=2500m limits.memory=1Gi pods=1 requests.cpu=1500m requests.ephemeral-storage=1Gi",
		`{spec: {containers: [{name: c, resources: {requests: {hugepages-2Mi: 4Mi, example.com/gpu: 2, kubernetes.io/x: 3}, limits: {example.com/gpu: 2}}}]}}`: "count/pods=1 hugepages-2Mi=4Mi pods=1 requests.example.com/gpu=2 requests.hugepages-2Mi=4Mi",
		`{spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}], initContainers: [{name: i, resources: {requests: {cpu: 3}}}]}}`:                     "count/pods=1 cpu=3 pods=1 requests.cpu=3",
	} {
		used := PodUsage(parse[corev1.Pod](t, manifest), now)
		if got := text(used); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", manifest, got, want)
		}
		for name := range used {
			if !PodResource(name) {
				t.Errorf("%s is used by pods and is no resource of theirs", name)
			}
		}
	}
	for _, name := range []corev1.ResourceName{"services", "requests.storage", "count/secrets", "limits.example.com/gpu", "secrets"} {
		if PodResource(name) {
			t.Errorf("%s is not used by pods", name)
		}
	}
}

func TestServiceUsage(t *testing.T) {
	for manifest, want := range map[string]string{
		`{spec: {ports: [{port: 1}]}}`:                                                                                       "count/services=1 services=1",
		`{spec: {type: NodePort, ports: [{port: 1}, {port: 2}]}}`:                                                            "count/services=1 services.nodeports=2 services=1",
		`{spec: {type: LoadBalancer, ports: [{port: 1}, {port: 2}]}}`:                                                        "count/services=1 services.loadbalancers=1 services.nodeports=2 services=1",
		`{spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 1}, {port: 2, nodePort: 30000}]}}`: "count/services=1 services.loadbalancers=1 services.nodeports=1 services=1",
	} {
		if got := text(ServiceUsage(parse[corev1.Service](t, manifest))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", manifest, got, want)
		}
	}
}

func TestClaimUsage(t *testing.T) {
	for manifest, want := range map[string]string{
		`{spec: {resources: {requests: {storage: 1Gi}}}}`:                                                           "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=1Gi",
		`{spec: {storageClassName: gold, resources: {requests: {storage: 1500m}}}}`:                                 "count/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 gold.storageclass.storage.k8s.io/requests.storage=2 persistentvolumeclaims=1 requests.storage=2",
		`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: old}}, spec: {storageClassName: gold}}`: "count/persistentvolumeclaims=1 old.storageclass.storage.k8s.io/persistentvolumeclaims=1 persistentvolumeclaims=1",
		`{spec: {resources: {requests: {storage: 1Gi}}}, status: {allocatedResources: {storage: 3Gi}}}`:             "count/persistentvolumeclaims=1 persistentvolumeclaims=1 requests.storage=3Gi",
	} {
		used := ClaimUsage(parse[corev1.PersistentVolumeClaim](t, manifest))
		if got := text(used); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", manifest, got, want)
		}
		for name := range used {
			if !ClaimResource(name) {
				t.Errorf("%s is used by claims and is no resource of theirs", name)
			}
		}
	}
}

func TestScopes(t *testing.T) {
	pods := map[string]string{
		"plain":    `{spec: {containers: [{name: c}]}}`,
		"deadline": `{spec: {activeDeadlineSeconds: 3, priorityClassName: low, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}`,
		"affine":   `{spec: {priorityClassName: high, affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {namespaces: [x], topologyKey: k}}]}}, containers: [{name: c}]}}`,
	}
	for quota, want := range map[string]string{
		`{spec: {}}`:                                     "affine deadline plain",
		`{spec: {scopes: [Terminating]}}`:                "deadline",
		`{spec: {scopes: [NotTerminating]}}`:             "affine plain",
		`{spec: {scopes: [BestEffort]}}`:                 "affine plain",
		`{spec: {scopes: [NotBestEffort, Terminating]}}`: "deadline",
		`{spec: {scopes: [CrossNamespacePodAffinity]}}`:  "affine",
		`{spec: {scopes: [VolumeAttributesClass]}}`:      "",
		`{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}}`:                        "affine deadline",
		`{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}}}`:                  "plain",
		`{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [low]}]}}}`:             "deadline",
		`{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: NotIn, values: [low]}]}}}`:          "affine plain",
		`{spec: {scopes: [Terminating], scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}}`: "deadline",
	} {
		var got []string
		for name, manifest := range pods {
			pod := parse[corev1.Pod](t, manifest)
			if !slices.ContainsFunc(Requirements(parse[corev1.ResourceQuota](t, quota)), func(r corev1.ScopedResourceSelectorRequirement) bool { return !PodFits(r, pod) }) {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s means %v, not %s", quota, got, want)
		}
	}
}

func TestClaimFits(t *testing.T) {
	for manifest, want := range map[string]bool{
		`{}`: false,
		`{spec: {volumeAttributesClassName: fast}}`:                                                     true,
		`{spec: {volumeAttributesClassName: slow}, status: {currentVolumeAttributesClassName: fast}}`:   true,
		`{status: {modifyVolumeStatus: {targetVolumeAttributesClassName: fast, status: InProgress}}}`:   true,
		`{spec: {volumeAttributesClassName: slow}, status: {currentVolumeAttributesClassName: "slow"}}`: false,
	} {
		r := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"fast"}}
		if got := ClaimFits(r, parse[corev1.PersistentVolumeClaim](t, manifest)); got != want {
			t.Errorf("%s: %v", manifest, got)
		}
	}
}

// TestSelects: an operator and its opposite never agree.
func TestSelects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c"})).Draw(t, "values")
		value := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "value")
		ask := func(operator corev1.ScopeSelectorOperator) bool {
			return selects(corev1.ScopedResourceSelectorRequirement{Operator: operator, Values: values}, value)
		}
		if ask(corev1.ScopeSelectorOpIn) == ask(corev1.ScopeSelectorOpNotIn) || ask(corev1.ScopeSelectorOpExists) == ask(corev1.ScopeSelectorOpDoesNotExist) {
			t.Fatalf("%q of %v is both in and out", value, values)
		}
	})
}
