package store

import (
	"context"

	"google.golang.org/grpc/metadata"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// clientOf is a client for one resource whose watches go over a stream of their own.
//
// A list that must be current asks etcd how far the resource's watch is, and waits for the answer. etcd answers a stream only when all watches on it have caught up, and
// one that begins behind the last revision, as that of a new cache does, has not until somebody writes something. On a stream that all resources share, a new
// cache in a quiet cluster would keep every list waiting for three seconds, its limit.
func (s *Store) clientOf(resource schema.GroupResource) *kubernetes.Client {
	shared := s.client.Client
	own := clientv3.NewCtxClient(shared.Ctx())
	own.KV, own.Lease, own.Cluster, own.Auth, own.Maintenance = shared.KV, shared.Lease, shared.Cluster, shared.Auth, shared.Maintenance
	own.Watcher = stream{shared.Watcher, resource.String()}
	client := &kubernetes.Client{Client: own}
	client.Kubernetes = client
	return client
}

// stream is a watcher of its own: clients of etcd open one for each set of metadata.
type stream struct {
	clientv3.Watcher
	name string
}

func (s stream) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	return s.Watcher.Watch(s.on(ctx), key, options...)
}

func (s stream) RequestProgress(ctx context.Context) error {
	return s.Watcher.RequestProgress(s.on(ctx))
}

func (s stream) on(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "bayplan-resource", s.name)
}
