package ttl

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/bayplan/bayplan/internal/controller/controllertest"
)

// What nodes are told changes late on the way up, and later still on the way down.
func TestSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := controllertest.NewEnv()
		if err != nil {
			t.Fatal(err)
		}
		deps, err := e.Deps()
		if err != nil {
			t.Fatal(err)
		}
		made, err := New(context.Background(), deps)
		if err != nil {
			t.Fatal(err)
		}
		c := made.(*Controller)
		defer func() {
			// Its queue ends with it.
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			c.Run(ctx)
		}()
		for _, test := range []struct {
			nodes int
			want  string
		}{{1, "0"}, {100, "0"}, {101, "15"}, {90, "15"}, {89, "0"}, {500, "15"}, {501, "30"}, {450, "30"}, {1000, "30"}, {2000, "60"}, {2001, "300"}, {1800, "300"}, {1799, "60"}, {0, "0"}} {
			for c.count != test.nodes {
				if c.count < test.nodes {
					c.counted(1)
				} else {
					c.counted(-1)
				}
			}
			if got := c.seconds(); got != test.want {
				t.Errorf("with %d nodes: %s seconds, want %s", test.nodes, got, test.want)
			}
		}
	})
}
