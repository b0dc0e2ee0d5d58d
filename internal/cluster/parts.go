package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/controller"
	"github.com/bayplan/bayplan/internal/controller/all"
	"github.com/bayplan/bayplan/internal/controller/bootstrapsigner"
	"github.com/bayplan/bayplan/internal/controller/clusterroleaggregation"
	"github.com/bayplan/bayplan/internal/controller/namespace"
	"github.com/bayplan/bayplan/internal/controller/rootca"
	"github.com/bayplan/bayplan/internal/controller/serviceaccount"
	"github.com/bayplan/bayplan/internal/controller/tokencleaner"
	"github.com/bayplan/bayplan/internal/scheduler"
	"github.com/bayplan/bayplan/internal/scheduler/explain"
)

// APIControllers are those without which an API cannot be used: the default ServiceAccount and kube-root-ca.crt of each namespace, and its end; roles that gather the rules of others, and
// the tokens by which machines join.
func APIControllers() []string {
	return []string{serviceaccount.Name, rootca.Name, namespace.Name, clusterroleaggregation.Name, tokencleaner.Name, bootstrapsigner.Name}
}

// startParts starts controllers and scheduler in this process. Where several servers share one store, those of one server run.
func (c *Cluster) startParts(ctx context.Context) error {
	start := func(ctx context.Context) (*parts, error) { return c.newParts(ctx) }
	running := context.WithoutCancel(ctx)
	if len(c.config.Etcd.Endpoints) > 0 {
		e, err := c.elect(running, start)
		if err != nil {
			return err
		}
		c.onStop(func(context.Context) error { e.stop(); return nil })
		return nil
	}
	p, err := start(running)
	if err != nil {
		return err
	}
	c.onStop(func(context.Context) error { p.stop(); return nil })
	c.times.mark(c.partsName())
	return nil
}

func (c *Cluster) partsName() string {
	if c.config.NoScheduler {
		return "controllers"
	}
	return "controllers, scheduler"
}

// parts are controllers and scheduler that run. They share one set of informers and speak to the API server as any client does.
type parts struct {
	cancel      context.CancelFunc
	group       sync.WaitGroup
	shared      informers.SharedInformerFactory
	broadcaster record.EventBroadcaster
	// unhandle ends the scheduler's answers to those who ask why; nil if it gives none.
	unhandle func()
}

func (p *parts) stop() {
	if p.unhandle != nil {
		p.unhandle()
	}
	p.cancel()
	p.group.Wait()
	p.shared.Shutdown()
	p.broadcaster.Shutdown()
}

func (c *Cluster) newParts(ctx context.Context) (*parts, error) {
	config := c.control.server.ClientConfig(&user.DefaultInfo{Name: user.KubeControllerManager})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	p := &parts{
		cancel: cancel, shared: informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropUnread)),
		broadcaster: record.NewBroadcaster(record.WithContext(running)),
	}
	controllers, err := c.controllers(running, config, client, p)
	var s *scheduler.Scheduler
	if err == nil && !c.config.NoScheduler {
		s, err = c.scheduler(p.shared)
	}
	var simulate func(context.Context)
	if err == nil {
		simulate, err = c.simulate(p)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	p.group.Go(func() { simulate(running) })
	if s != nil {
		p.unhandle = c.control.server.Handle(explain.Path, &explain.Handler{Scheduler: s, Pods: p.shared.Core().V1().Pods().Lister()})
	}
	p.run(running, controllers, s)
	return p, nil
}

func (p *parts) run(ctx context.Context, controllers *all.Group, s *scheduler.Scheduler) {
	p.shared.Start(ctx.Done())
	p.group.Go(func() { controllers.Run(ctx) })
	if s == nil {
		return
	}
	p.group.Go(func() {
		if err := s.Run(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "The scheduler ended")
		}
	})
}

// dropUnread keeps out of the shared cache what no part reads.
func dropUnread(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

func (c *Cluster) controllers(ctx context.Context, config *rest.Config, client kubernetes.Interface, p *parts) (*all.Group, error) {
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	p.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	group, err := all.New(ctx, controller.Deps{
		Client: client, Metadata: metadataClient, Discovery: resources, Informers: p.shared, RootCA: c.control.authority.CertPEM(), Authority: c.control.authority,
		Recorder: func(component string) record.EventRecorder {
			return p.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
		},
	}, c.config.Controllers...)
	if err != nil {
		return nil, fmt.Errorf("making the controllers: %w", err)
	}
	return group, nil
}

func (c *Cluster) scheduler(shared informers.SharedInformerFactory) (*scheduler.Scheduler, error) {
	config := c.control.server.ClientConfig(&user.DefaultInfo{Name: user.KubeScheduler})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	s, err := scheduler.New(scheduler.Config{Client: client, Informers: shared})
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	return s, nil
}
