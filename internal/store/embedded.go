package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

const (
	// quotaBytes replaces etcd's 2 GiB, which about 100,000 pods fill.
	quotaBytes = 8 << 30
	// A single member elects itself: short ticks make it ready in some 30 ms.
	tickMilliseconds     = 10
	electionMilliseconds = 100
	// maxRequestBytes is above the API server's own limit of 3 MiB for a request body.
	maxRequestBytes = 4 << 20
	// A start rewrites the file when that frees so much: nobody waits for the store yet.
	bootstrapDefragMegabytes = 256
)

func openEmbedded(ctx context.Context, options Options) (*Store, error) {
	server, err := startEmbedded(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("starting the embedded etcd on %s: %w", options.Dir, err)
	}
	client := v3client.New(server.Server)
	d := startDefragmenter(server.Server.Backend(), options)
	return newStore(client, options, d.stop, func() { _ = client.Close() }, server.Close), nil
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
	if err := markReady(options.Dir); err != nil {
		server.Close()
		return nil, err
	}
	return server, nil
}

// readyMark is a file that says that etcd was ready once on this directory.
const readyMark = "ready"

func markReady(dir string) error {
	path := filepath.Join(dir, readyMark)
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	return atomicfile.Write(path, nil, 0o600)
}

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
	c.BootstrapDefragThresholdMegabytes = bootstrapDefragMegabytes
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(dir))
	c.UnsafeNoFsync = false
	return c
}

const (
	// Rewriting the file pays when it frees at least this much, and half of the file.
	defragBytes = 128 << 20
	// defragPause bounds how often: every write waits while the file is rewritten.
	defragPause = time.Hour
	// defragCheck is how often the size is looked at.
	defragCheck = 5 * time.Minute
)

// defragmenter gives the disk back what compaction freed. It works on the backend: the maintenance service of etcd's client within the process expects
// the health service of a listening server, and panics.
type defragmenter struct {
	backend backend.Backend
	options Options
	last    time.Time
	cancel  context.CancelFunc
	ended   chan struct{}
}

func startDefragmenter(b backend.Backend, options Options) *defragmenter {
	ctx, cancel := context.WithCancel(context.Background())
	d := &defragmenter{backend: b, options: options, cancel: cancel, ended: make(chan struct{})}
	go d.run(ctx)
	return d
}

func (d *defragmenter) stop() {
	d.cancel()
	<-d.ended
}

func (d *defragmenter) run(ctx context.Context) {
	defer close(d.ended)
	ticker := d.options.Clock.NewTicker(defragCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			d.check()
		}
	}
}

// check reports whether it rewrote the file. An error of etcd is one that its other users see too.
func (d *defragmenter) check() bool {
	now := d.options.Clock.Now()
	if !d.last.IsZero() && now.Sub(d.last) < defragPause {
		return false
	}
	if !pays(d.backend.Size(), d.backend.SizeInUse()) {
		return false
	}
	d.last = now
	return d.backend.Defrag() == nil
}

func pays(size, inUse int64) bool { return size-inUse >= defragBytes && inUse <= size/2 }
