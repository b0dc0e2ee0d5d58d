package store

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Dir: dir, CompactionInterval: time.Hour, ReadyTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := s.Healthy(t.Context()); err != nil {
		t.Errorf("not healthy: %v", err)
	}
	if _, err := s.Client().Put(t.Context(), "a", "1"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir)
	defer s.Close()
	if got, err := s.Client().Get(t.Context(), "a"); err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "1" {
		t.Errorf("after reopen: %v, %v", got, err)
	}
}

// TestKilledFirstStart: a start that ends before etcd was ready must not keep the next one from getting ready. The time at which it ends is spread over the start.
func TestKilledFirstStart(t *testing.T) {
	dir := t.TempDir()
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*3*time.Millisecond)
		s, err := Open(ctx, Options{Dir: dir, CompactionInterval: time.Hour, ReadyTimeout: time.Minute})
		cancel()
		if err == nil {
			s.Close()
		}
	}
	open(t, dir).Close()
}

func TestFsyncIsOn(t *testing.T) {
	if c := embeddedConfig(t.TempDir()); c.UnsafeNoFsync || len(c.ListenClientUrls)+len(c.ListenPeerUrls) > 0 {
		t.Errorf("etcd does not sync, or listens: %+v", c)
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir())
	defer s.Close()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := s.Client().Put(b.Context(), fmt.Sprintf("k%d", i%1000), "value"); err != nil {
			b.Fatal(err)
		}
	}
}
