// Package store holds the cluster's state: etcd, in this process by default or an existing cluster by its addresses.
//
// Open gives a Store; its Decorator is what the API server's registries build on: for each resource an etcd3 store (which keeps objects, encoded)
// under a watch cache (which answers lists and watches). The API server itself keeps nothing.
//
//	embedded.go   etcd in this process, and what keeps its file small
//	external.go   an etcd cluster that others run
//	snapshot.go   the whole state as one stream; a member's directory made from one
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/utils/clock"
)

// Prefix is where all keys of Kubernetes objects begin, as in every Kubernetes cluster.
const Prefix = "/registry"

// Options say where the state lives: in Dir, or in the etcd cluster of External.
type Options struct {
	// Dir is the directory of the embedded etcd.
	Dir string
	// External, where it has endpoints, is an etcd cluster that is used in place of the embedded one.
	External External
	// CompactionInterval is how long old revisions are kept: watches and list pages older than that answer 410. Zero keeps them for ever.
	CompactionInterval time.Duration
	// ReadyTimeout bounds the wait for etcd at start.
	ReadyTimeout time.Duration
	// Clock tells when to compact and to defragment; the real one when nil.
	Clock clock.WithTicker
}

// Store is an open etcd.
type Store struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	external  bool
	close     []func()
}

// ErrExternal refuses what only the embedded etcd can do.
var ErrExternal = errors.New("the state is in an etcd cluster of its own: use etcdctl there")

// Open starts etcd in this process, or connects to the one that the options name.
func Open(ctx context.Context, options Options) (*Store, error) {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if len(options.External.Endpoints) > 0 {
		return openExternal(ctx, options)
	}
	return openEmbedded(ctx, options)
}

// newStore is a store on a client; closers end what is below it, in order.
func newStore(client *clientv3.Client, options Options, closers ...func()) *Store {
	wrapped := &kubernetes.Client{Client: client}
	wrapped.Kubernetes = wrapped
	compactor := etcd3.NewCompactor(client, options.CompactionInterval, options.Clock, nil)
	return &Store{
		client: wrapped, compactor: compactor, external: len(options.External.Endpoints) > 0,
		close: append([]func(){compactor.Stop}, closers...),
	}
}

// Client returns the client of etcd itself.
func (s *Store) Client() *clientv3.Client { return s.client.Client }

// Healthy reads a key through the quorum.
func (s *Store) Healthy(ctx context.Context) error {
	_, err := s.client.KV.Get(ctx, Prefix+"/health")
	return err
}

// Facts are what a person wants to know of the store.
type Facts struct {
	Version  string
	Revision int64
	// Size is that of the file, InUse what is needed of it; both in bytes.
	Size, InUse int64
	Errors      []string `json:",omitempty"`
}

// Facts asks etcd for them.
func (s *Store) Facts(ctx context.Context) (Facts, error) {
	endpoint := ""
	if endpoints := s.client.Endpoints(); len(endpoints) > 0 {
		endpoint = endpoints[0]
	}
	status, err := s.client.Status(ctx, endpoint)
	if err != nil {
		return Facts{}, fmt.Errorf("asking etcd for its status: %w", err)
	}
	return Facts{status.Version, status.Header.Revision, status.DbSize, status.DbSizeInUse, status.Errors}, nil
}

// Close stops what Open started. What was acknowledged is on disk before as well as after.
func (s *Store) Close() {
	for _, f := range s.close {
		f()
	}
}
