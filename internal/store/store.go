// Package store holds the cluster's state: etcd, in this process by default or an existing cluster by its addresses.
//
// Open gives a Store; its Decorator is what the API server's registries build on: for each resource an etcd3 store (which keeps objects, encoded)
// under a watch cache (which answers lists and watches). The API server itself keeps nothing.
package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

// Prefix is where all keys of Kubernetes objects begin, as in every Kubernetes cluster.
const Prefix = "/registry"

const (
	// quotaBytes replaces etcd's 2 GiB, which about 100,000 pods fill.
	quotaBytes = 8 << 30
	// A single member elects itself: short ticks make it ready in some 30 ms.
	tickMilliseconds     = 10
	electionMilliseconds = 100
	// maxRequestBytes is above the API server's own limit of 3 MiB for a request body.
	maxRequestBytes = 4 << 20
)

// Options say where the state lives.
type Options struct {
	// Dir is the directory of the embedded etcd.
	Dir string
	// CompactionInterval is how long old revisions are kept: watches and list pages older than that answer 410.
	CompactionInterval time.Duration
	// ReadyTimeout bounds the wait for etcd at start.
	ReadyTimeout time.Duration
}

// Store is an open etcd.
type Store struct {
	client    *kubernetes.Client
	compactor etcd3.Compactor
	interval  time.Duration
	close     []func()
}

// Open starts etcd in this process on the directory of the options.
func Open(ctx context.Context, options Options) (*Store, error) {
	server, err := startEmbedded(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded etcd on %s: %w", options.Dir, err)
	}
	client := &kubernetes.Client{Client: embeddedClient(server)}
	client.Kubernetes = client
	compactor := etcd3.NewCompactor(client.Client, options.CompactionInterval, clock.RealClock{}, nil)
	s := &Store{client: client, compactor: compactor, interval: options.CompactionInterval}
	s.close = []func(){compactor.Stop, func() { _ = client.Close() }, server.Close}
	return s, nil
}

// Client returns the client of etcd itself.
func (s *Store) Client() *clientv3.Client { return s.client.Client }

// Healthy reads a key through the quorum.
func (s *Store) Healthy(ctx context.Context) error {
	_, err := s.client.KV.Get(ctx, Prefix+"/health")
	return err
}

// Close stops what Open started. What was acknowledged is on disk before as well as after.
func (s *Store) Close() {
	for _, f := range s.close {
		f()
	}
}

func startEmbedded(ctx context.Context, options Options) (*embed.Etcd, error) {
	if err := os.MkdirAll(options.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := clearUnfinished(options.Dir); err != nil {
		return nil, err
	}
	server, err := embed.StartEtcd(embeddedConfig(filepath.Clean(options.Dir)))
	if err != nil {
		return nil, err
	}
	if err := awaitReady(ctx, server, options.ReadyTimeout); err != nil {
		server.Close()
		return nil, err
	}
	return server, atomicfile.Write(filepath.Join(options.Dir, readyMark), nil, 0o600)
}

// readyMark is a file that says that etcd was ready once on this directory.
const readyMark = "ready"

// clearUnfinished removes what a first start left that was killed before etcd was ready: a member whose log has no cluster in it never becomes ready again.
// Nothing can be lost, since nothing is written before Open returns.
func clearUnfinished(dir string) error {
	_, err := os.Stat(filepath.Join(dir, readyMark))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "member"))
}

func awaitReady(ctx context.Context, server *embed.Etcd, timeout time.Duration) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-server.Server.ReadyNotify():
		return nil
	case err := <-server.Err():
		return err
	case <-timer.C:
		return fmt.Errorf("not ready after %s", timeout)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// embeddedConfig makes a single member that listens nowhere: its only client is this process.
func embeddedConfig(dir string) *embed.Config {
	c := embed.NewConfig()
	c.Dir = dir
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.QuotaBackendBytes = quotaBytes
	c.TickMs, c.ElectionMs = tickMilliseconds, electionMilliseconds
	c.MaxRequestBytes = maxRequestBytes
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "0"
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger())
	c.UnsafeNoFsync = false
	return c
}

func embeddedClient(server *embed.Etcd) *clientv3.Client { return v3client.New(server.Server) }
