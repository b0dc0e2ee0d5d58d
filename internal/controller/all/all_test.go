package all

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// The whole group starts on a fresh API, gives each namespace what it must have, and ends when it is told to.
func TestGroupStartsAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := controllertest.NewEnv()
		if err != nil {
			t.Fatal(err)
		}
		deps, err := e.Deps()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		group, err := New(ctx, deps)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			group.Run(ctx)
			deps.Informers.Shutdown()
		}()
		e.Settle()
		for _, namespace := range []string{"default", "kube-system"} {
			if _, err := e.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			if _, err := e.Client.CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		}
		cancel()
		<-done
	})
}

func TestUnknownNamesAreRefused(t *testing.T) {
	_, err := New(t.Context(), controllerDeps(t), "no-such-controller")
	if err == nil || !strings.Contains(err.Error(), "no-such-controller") {
		t.Fatalf("got %v, want an error that names the unknown controller", err)
	}
}

func controllerDeps(t *testing.T) controller.Deps {
	t.Helper()
	e, err := controllertest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	deps, err := e.Deps()
	if err != nil {
		t.Fatal(err)
	}
	return deps
}

// The table's Needs are what the controllers really watch.
func TestNeedsAreComplete(t *testing.T) {
	everywhere := map[string]bool{"pods": true, "nodes": true, "namespaces": true}
	for _, entry := range Table() {
		synctest.Test(t, func(t *testing.T) {
			e, err := controllertest.NewEnv()
			if err != nil {
				t.Fatal(err)
			}
			deps, err := e.Deps()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			c, err := entry.New(ctx, deps)
			if err != nil {
				t.Fatal(err)
			}
			deps.Informers.StartWithContext(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.Run(ctx)
			}()
			for kind := range deps.Informers.WaitForCacheSync(ctx.Done()) {
				if name := e.API.ResourceName(kind.Elem().Name()); !everywhere[name] && !slices.Contains(entry.Needs, name) {
					t.Errorf("%s watches %s, which its Needs do not name", entry.Name, name)
				}
			}
			cancel()
			<-done
			deps.Informers.Shutdown()
		})
	}
}

func TestAvailable(t *testing.T) {
	deps := controllerDeps(t)
	names, missing, err := Available(deps.Discovery)
	if err != nil || len(missing) > 0 || len(names) != len(Table()) {
		t.Fatalf("available are %v, missing is %v, error %v; want all", names, missing, err)
	}
}
