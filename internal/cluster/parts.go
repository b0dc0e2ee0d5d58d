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
	"github.com/bayplan/bayplan/internal/scheduler"
)

// startParts starts controllers and scheduler in this process. They share one set of informers and speak to the API server as any client does.
func (c *Cluster) startParts(ctx context.Context) error {
	config := c.control.server.ClientConfig(&user.DefaultInfo{Name: user.KubeControllerManager})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropUnread))
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	c.onStop(func(context.Context) error {
		cancel()
		group.Wait()
		shared.Shutdown()
		return nil
	})
	controllers, err := c.controllers(running, config, client, shared)
	if err != nil {
		return err
	}
	s, err := c.scheduler(shared)
	if err != nil {
		return err
	}
	shared.Start(running.Done())
	group.Go(func() { controllers.Run(running) })
	group.Go(func() {
		if err := s.Run(running); err != nil {
			klog.FromContext(running).Error(err, "The scheduler ended")
		}
	})
	c.times.mark("controllers, scheduler")
	return nil
}

// dropUnread keeps out of the shared cache what no part reads.
func dropUnread(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

func (c *Cluster) controllers(ctx context.Context, config *rest.Config, client kubernetes.Interface, shared informers.SharedInformerFactory) (*all.Group, error) {
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	c.onStop(func(context.Context) error { broadcaster.Shutdown(); return nil })
	group, err := all.New(ctx, controller.Deps{
		Client: client, Metadata: metadataClient, Discovery: resources, Informers: shared, RootCA: c.control.authority.CertPEM(),
		Recorder: func(component string) record.EventRecorder {
			return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component})
		},
	})
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
