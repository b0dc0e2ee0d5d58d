package extension

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"
)

// syncTimeout is how long a request waits, after the server's start, until it is known which configurations there are.
const syncTimeout = 10 * time.Second

// onUse stands for a plugin that is made when the first object that configures it is seen. It stays from then on.
type onUse struct {
	*admission.Handler
	used atomic.Bool
	make func() (admission.Interface, error)
	// synced are done when the objects that were there at the start have been seen.
	synced []cache.DoneChecker
}

func newOnUse(operations []admission.Operation, make func() (admission.Interface, error), objects ...cache.SharedIndexInformer) (*onUse, error) {
	p := &onUse{Handler: admission.NewHandler(operations...), make: sync.OnceValues(make)}
	for _, informer := range objects {
		seen, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { p.use() }})
		if err != nil {
			return nil, fmt.Errorf("watching what configures an admission plugin: %w", err)
		}
		p.synced = append(p.synced, seen.HasSyncedChecker())
	}
	return p, nil
}

// use makes the plugin ahead of the first request that it decides on: policies take a moment to be compiled.
func (p *onUse) use() {
	if p.used.Swap(true) {
		return
	}
	if _, err := p.make(); err != nil {
		utilruntime.HandleError(fmt.Errorf("making an admission plugin: %w", err))
	}
}

// Admit implements admission.MutationInterface.
func (p *onUse) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.plugin(ctx, a)
	if changes, ok := plugin.(admission.MutationInterface); ok && err == nil {
		return changes.Admit(ctx, a, o)
	}
	return err
}

// Validate implements admission.ValidationInterface.
func (p *onUse) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	plugin, err := p.plugin(ctx, a)
	if checks, ok := plugin.(admission.ValidationInterface); ok && err == nil {
		return checks.Validate(ctx, a, o)
	}
	return err
}

// plugin returns nil while nothing configures it. It is not asked about what the server itself writes: what every cluster has must be made, or be put right, for the server to
// start, and a webhook may be a pod that runs only then.
func (p *onUse) plugin(ctx context.Context, a admission.Attributes) (admission.Interface, error) {
	if u := a.GetUserInfo(); u != nil && u.GetName() == user.APIServerUser {
		return nil, nil
	}
	if !p.used.Load() {
		if err := p.awaitSync(ctx, a); err != nil {
			return nil, err
		}
	}
	if !p.used.Load() {
		return nil, nil
	}
	plugin, err := p.make()
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("making an admission plugin: %w", err))
	}
	return plugin, nil
}

func (p *onUse) awaitSync(ctx context.Context, a admission.Attributes) error {
	for _, synced := range p.synced {
		select {
		case <-synced.Done():
			continue
		default:
		}
		waiting, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		select {
		case <-synced.Done():
		case <-waiting.Done():
			return admission.NewForbidden(a, errors.New("not yet ready to handle request"))
		}
	}
	return nil
}
