//go:build !linux

package embedded

import (
	"context"
	"errors"

	"github.com/bayplan/bayplan/internal/node/runtime"
)

// Runtime runs containers; it needs Linux.
type Runtime struct{ runtime.Service }

// New says that containers need Linux.
func New(context.Context, Config) (*Runtime, error) {
	return nil, errors.New("the container runtime needs Linux: on other systems use simulated nodes (--sim-nodes)")
}

// Close has nothing to do.
func (r *Runtime) Close(context.Context) error { return nil }
