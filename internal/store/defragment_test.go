package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
)

// TestDefragment: room that compaction freed goes back to the disk, at most once an hour, and what is stored stays.
func TestDefragment(t *testing.T) {
	dir := t.TempDir()
	server, err := startEmbedded(t.Context(), Options{Dir: dir, ReadyTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	client := v3client.New(server.Server)
	s := newStore(client, Options{Clock: clock.RealClock{}}, func() { _ = client.Close() }, server.Close)
	defer s.Close()
	put(t, s, "kept", "value")
	revision := fill(t, s, 50, 3<<20)
	now := testingclock.NewFakeClock(time.Unix(0, 0))
	d := &defragmenter{backend: server.Server.Backend(), options: Options{Clock: now}}
	if d.check() {
		t.Error("a file without free room was rewritten")
	}
	if _, err := s.Client().Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	before := databaseSize(t, dir)
	if !d.check() {
		t.Error("a file that is free for the most part was not rewritten")
	}
	if after := databaseSize(t, dir); after > before/10 {
		t.Errorf("the file has %d bytes, before it had %d", after, before)
	}
	if got, err := s.Client().Get(t.Context(), "kept"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("what was stored is %v, %v", got, err)
	}
	revision = fill(t, s, 50, 3<<20)
	if _, err := s.Client().Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	now.Step(defragPause - time.Second)
	if d.check() {
		t.Error("the file was rewritten twice within an hour")
	}
	now.Step(time.Second)
	if !d.check() {
		t.Error("the file was not rewritten again after an hour")
	}
}

// fill puts count values of so many bytes and deletes them. It returns the last revision.
func fill(t *testing.T, s *Store, count, bytes int) int64 {
	t.Helper()
	value := strings.Repeat("x", bytes)
	for i := range count {
		put(t, s, fmt.Sprintf("garbage/%d", i), value)
	}
	deleted, err := s.Client().Delete(t.Context(), "garbage/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	return deleted.Header.Revision
}

func databaseSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
