package fleet_test

import (
	"context"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/fleet"
	"github.com/bayplan/bayplan/internal/fleet/manifest"
)

// groups and rules of the transcripts.
const objects = `
apiVersion: bayplan.dev/v1alpha1
kind: NodeGroup
metadata: {name: small}
spec:
  count: 2
  template: {status: {capacity: {cpu: "4", memory: 1Gi}}}
---
apiVersion: bayplan.dev/v1alpha1
kind: PodBehavior
metadata: {name: jobs}
spec:
  selector: {pods: {matchLabels: {kind: job}}}
  behavior: {containers: [{runFor: 20s}]}
`

func newFleet(t *testing.T) controllertest.Constructor {
	return func(ctx context.Context, deps controller.Deps) (controller.Controller, error) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1.NamespaceNodeLease}}
		if _, err := deps.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		parsed, err := manifest.Read([]byte(objects))
		if err != nil {
			t.Fatal(err)
		}
		return fleet.New(fleet.Config{
			Client: deps.Client, Informers: deps.Informers, Recorder: deps.Recorder(fleet.Name), Clock: deps.Clock,
			Groups: parsed.Groups, Rules: parsed.Rules, Seed: 1,
			NodeCIDR: netip.MustParsePrefix("172.28.0.0/15"), PodCIDR: netip.MustParsePrefix("10.128.0.0/10"),
		})
	}
}

func TestTranscripts(t *testing.T) { controllertest.Scripts(t, "testdata/*.txt", newFleet(t)) }
