package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"
)

func save(t testing.TB, s *Store) []byte {
	t.Helper()
	out := &bytes.Buffer{}
	if err := s.WriteSnapshot(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// restored is a store made of the snapshot, whose directory goes when it is closed: etcd takes its log's room on disk beforehand.
func restored(t testing.TB, snapshot []byte) *Store {
	t.Helper()
	base, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	database, dir := filepath.Join(base, "db"), filepath.Join(base, "etcd")
	if _, err := ReadSnapshot(bytes.NewReader(snapshot), database); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), database, dir, time.Minute); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	s.close = append(s.close, func() { _ = os.RemoveAll(base) })
	return s
}

func contents(t testing.TB, s *Store) map[string]string {
	t.Helper()
	got, err := s.Client().Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, kv := range got.Kvs {
		out[string(kv.Key)] = fmt.Sprintf("%s@%d", kv.Value, kv.ModRevision)
	}
	return out
}

func put(t testing.TB, s *Store, key, value string, options ...clientv3.OpOption) int64 {
	t.Helper()
	r, err := s.Client().Put(t.Context(), key, value, options...)
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Revision
}

// TestRestore: what was there at the snapshot is there after it, with its revisions and leases; what came or went later is undone; and no revision comes twice.
func TestRestore(t *testing.T) {
	s := open(t, t.TempDir())
	lease, err := s.Client().Grant(t.Context(), 3600)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "kept", "1", clientv3.WithLease(lease.ID))
	put(t, s, "changed", "before")
	put(t, s, "gone", "x")
	if _, err := s.Client().Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	want, snapshot := contents(t, s), save(t, s)
	put(t, s, "changed", "after")
	last := put(t, s, "late", "1")
	s.Close()

	s = restored(t, snapshot)
	defer func() { s.Close() }()
	if got := contents(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("restored %v, want %v", got, want)
	}
	if alive, err := s.Client().TimeToLive(t.Context(), lease.ID, clientv3.WithAttachedKeys()); err != nil || alive.TTL <= 0 || len(alive.Keys) != 1 {
		t.Errorf("the lease: %+v, %v", alive, err)
	}
	if next := put(t, s, "new", "1"); next <= last {
		t.Errorf("revision %d after the restore, %d was given out before", next, last)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer := <-s.Client().Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(last))
	if answer.CompactRevision == 0 {
		t.Errorf("a watch from before the restore goes on: %+v", answer)
	}
	// A restored store survives a restart and can be saved and restored again.
	again := restored(t, save(t, s))
	defer again.Close()
	if fmt.Sprint(contents(t, again)) != fmt.Sprint(contents(t, s)) {
		t.Error("the second generation differs")
	}
}

// TestRestoreProperty: for any history, a restored store holds what the saved one held.
func TestRestoreProperty(t *testing.T) {
	s := open(t, t.TempDir())
	defer func() { s.Close() }()
	rapid.Check(t, func(r *rapid.T) {
		for range rapid.IntRange(1, 30).Draw(r, "operations") {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "key")
			var err error
			switch rapid.IntRange(0, 3).Draw(r, "operation") {
			case 0:
				_, err = s.Client().Delete(t.Context(), key)
			case 1:
				var now *clientv3.GetResponse
				if now, err = s.Client().Get(t.Context(), key); err == nil {
					_, err = s.Client().Compact(t.Context(), now.Header.Revision)
					if errors.Is(err, rpctypes.ErrCompacted) {
						err = nil
					}
				}
			default:
				_, err = s.Client().Put(t.Context(), key, rapid.StringN(0, 20, 40).Draw(r, "value"))
			}
			if err != nil {
				r.Fatal(err)
			}
		}
		want := contents(t, s)
		next := restored(t, save(t, s))
		s.Close()
		s = next
		if got := contents(t, s); fmt.Sprint(got) != fmt.Sprint(want) {
			r.Errorf("restored %v, want %v", got, want)
		}
	})
}

func TestDamagedSnapshotIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	put(t, s, "a", "1")
	whole := save(t, s)
	s.Close()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"empty": nil, "a bit": flipped, "cut in a page": whole[:len(whole)-100], "a page less": append(bytes.Clone(whole[:len(whole)-32-4096]), whole[len(whole)-32:]...),
		"no sum": whole[:len(whole)-32],
	} {
		path := filepath.Join(t.TempDir(), "db")
		if _, err := ReadSnapshot(bytes.NewReader(data), path); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
	// Something else than a database, with whatever sum.
	path, dir := filepath.Join(t.TempDir(), "db"), filepath.Join(t.TempDir(), "etcd")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), path, dir, time.Minute); !errors.Is(err, ErrDamaged) {
		t.Errorf("no database: %v, want ErrDamaged", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a refused restore left a directory")
	}
}

func TestRestoreNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	if err := Restore(t.Context(), "unread", dir, time.Minute); err == nil {
		t.Error("restored into a directory that is there")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory went: %v", err)
	}
}

// TestSnapshotUnderLoad: a snapshot is of one moment: of two keys that are always written together, it holds the same value.
func TestSnapshotUnderLoad(t *testing.T) {
	s := open(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() {
		i := 0
		for ; ctx.Err() == nil; i++ {
			value := fmt.Sprint(i)
			_, _ = s.Client().Txn(ctx).Then(clientv3.OpPut("left", value), clientv3.OpPut("right", value)).Commit()
		}
		ended <- i
	}()
	var snapshots [][]byte
	for range 3 {
		snapshots = append(snapshots, save(t, s))
	}
	cancel()
	if <-ended == 0 {
		t.Fatal("nothing was written meanwhile")
	}
	s.Close()
	for _, snapshot := range snapshots {
		r := restored(t, snapshot)
		if got := contents(t, r); got["left"] != got["right"] {
			t.Errorf("a snapshot of two moments: %v", got)
		}
		r.Close()
	}
}
