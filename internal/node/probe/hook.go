package probe

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// hookTimeout bounds hooks for which nothing else does.
const hookTimeout = time.Hour

// Hook runs a postStart or preStop handler. Without a limit (0) it may take long.
func (p *Prober) Hook(ctx context.Context, h *v1.LifecycleHandler, t Target, limit time.Duration) error {
	if limit == 0 {
		limit = hookTimeout
	}
	if h.Sleep != nil {
		timer := p.Clock.NewTimer(min(limit, time.Duration(h.Sleep.Seconds)*time.Second))
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C():
			return nil
		}
	}
	spec := &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: h.Exec, HTTPGet: h.HTTPGet, TCPSocket: h.TCPSocket}}
	result, output, err := p.ask(ctx, spec, t, limit)
	if err != nil {
		return err
	}
	if result == Failure {
		return fmt.Errorf("hook failed: %.*s", maxOutput, output)
	}
	return nil
}
