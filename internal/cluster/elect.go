package cluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// The times of kube-controller-manager's own election.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
	// LeaseName is the Lease in kube-system whose holder runs the controllers.
	LeaseName = "bayplan-controllers"
)

// election runs parts while this server holds the Lease, and again whenever it gets it.
type election struct {
	elector *leaderelection.LeaderElector
	start   func(context.Context) (*parts, error)
	// ending is closed by stop: the parts end then, and after them the holding of the Lease.
	ending  chan struct{}
	release context.CancelFunc
	ended   chan struct{}
	// leading is held while parts run.
	leading sync.Mutex
}

func (c *Cluster) elect(ctx context.Context, start func(context.Context) (*parts, error)) (*election, error) {
	client, err := kubernetes.NewForConfig(c.control.server.ClientConfig(&user.DefaultInfo{Name: user.KubeControllerManager}))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	e := &election{start: start, ending: make(chan struct{}), ended: make(chan struct{})}
	e.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: LeaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%s", host, uuid.NewUUID())},
		},
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: e.lead, OnStoppedLeading: func() {}},
	})
	if err != nil {
		return nil, err
	}
	running, release := context.WithCancel(ctx)
	e.release = release
	go e.run(running)
	return e, nil
}

func (e *election) run(ctx context.Context) {
	defer close(e.ended)
	for ctx.Err() == nil {
		e.elector.Run(ctx)
	}
}

// lead runs the parts until the Lease is lost or stop is called.
func (e *election) lead(ctx context.Context) {
	e.leading.Lock()
	defer e.leading.Unlock()
	select {
	case <-e.ending:
		return
	default:
	}
	p, err := e.start(context.WithoutCancel(ctx))
	if err != nil {
		klog.FromContext(ctx).Error(err, "This server holds the Lease of the controllers and cannot run them", "lease", LeaseName)
		return
	}
	defer p.stop()
	select {
	case <-e.ending:
	case <-ctx.Done():
		klog.FromContext(ctx).Info("Another server runs the controllers from now on", "lease", LeaseName)
	}
}

func (e *election) stop() {
	close(e.ending)
	e.awaitParts()
	e.release()
	<-e.ended
	e.awaitParts()
}

func (e *election) awaitParts() {
	e.leading.Lock()
	defer e.leading.Unlock()
}
