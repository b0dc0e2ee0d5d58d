package provision_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/controllertest"
	"github.com/bayplan/bayplan/internal/fleet"
	"github.com/bayplan/bayplan/internal/fleet/provision"
)

func newFleet(_ context.Context, deps controller.Deps) (controller.Controller, error) {
	return fleet.New(fleet.Config{
		Client: deps.Client, Informers: deps.Informers, Recorder: deps.Recorder(fleet.Name), Clock: deps.Clock,
		NodeCIDR: netip.MustParsePrefix("172.28.0.0/15"), PodCIDR: netip.MustParsePrefix("10.128.0.0/10"),
	})
}

func group(name string, count int32, template string) *v1alpha1.NodeGroup {
	return &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeGroupSpec{Count: count, Template: runtime.RawExtension{Raw: []byte(template)}}}
}

func TestAddAndDelete(t *testing.T) {
	controllertest.Bubble(t, func(t *testing.T, e *controllertest.Env) {
		ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
		defer cancel()
		add := func(g *v1alpha1.NodeGroup, want ...string) {
			t.Helper()
			if names, err := provision.Add(ctx, e.Client, g); err != nil || !slices.Equal(names, want) {
				t.Fatalf("added %v, %v; want %v", names, err, want)
			}
		}
		add(group("big", 2, `{"status":{"capacity":{"cpu":"64"}}}`), "big-1", "big-2")
		add(group("big", 2, ""), "big-3", "big-4")
		add(group("big", 0, ""))
		if _, err := provision.Add(ctx, e.Client, group("g", 2, `{"metadata":{"name":"big-1"}}`)); err == nil || !strings.Contains(err.Error(), "put {index}") {
			t.Errorf("a name that is taken: %v", err)
		}
		n, err := e.Client.CoreV1().Nodes().Get(ctx, "big-1", metav1.GetOptions{})
		if err != nil || n.Status.Allocatable.Cpu().String() != "64" || n.Labels[v1alpha1.LabelNodeGroup] != "big" {
			t.Errorf("big-1: %v, %v", n, err)
		}
		remove := func(choice provision.Choice, wants string) {
			t.Helper()
			names, err := provision.Delete(ctx, e.Client, choice)
			if got := strings.Join(names, " "); err != nil || got != wants {
				t.Fatalf("deleted %q, %v; want %q", got, err, wants)
			}
		}
		remove(provision.Choice{Names: []string{"big-1"}}, "big-1")
		remove(provision.Choice{Group: "big", Count: 1}, "big-4")
		add(group("big", 1, ""), "big-1")
		remove(provision.Choice{Group: "big"}, "big-3 big-2 big-1")
	}, newFleet)
}

func TestRefusals(t *testing.T) {
	controllertest.Bubble(t, func(t *testing.T, e *controllertest.Env) {
		ctx, cancel := context.WithTimeout(e.Context(), time.Minute)
		defer cancel()
		real := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}}
		if _, err := e.Client.CoreV1().Nodes().Create(ctx, real, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			choice provision.Choice
			want   string
		}{
			{provision.Choice{Names: []string{"real"}}, "not simulated"}, {provision.Choice{Names: []string{"gone"}}, "not found"},
			{provision.Choice{Group: "none"}, `no node of group "none"`},
		} {
			if _, err := provision.Delete(ctx, e.Client, test.choice); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v: %v, want %q", test.choice, err, test.want)
			}
		}
		// Nobody simulates them here.
		if _, err := provision.Add(ctx, e.Client, group("g", 2, "")); err == nil || !strings.Contains(err.Error(), "2 of 2 nodes are not Ready, for instance g-1") {
			t.Errorf("without a fleet: %v", err)
		}
	})
}
