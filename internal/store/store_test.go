package store

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
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

// writerDir makes this test binary a process that writes until it is killed, and says what was acknowledged.
const writerDir = "STORE_TEST_WRITER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		write(dir)
	}
	os.Exit(m.Run())
}

func write(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir, CompactionInterval: time.Hour, ReadyTimeout: time.Minute})
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		if _, err := s.Client().Put(context.Background(), fmt.Sprintf("k%d", i), strconv.Itoa(i)); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

// TestKilledWriter: what was acknowledged before kill -9 is there afterwards, in five rounds on one directory.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		acknowledged := killedWriter(t, dir, 20*(round+1))
		s := open(t, dir)
		for i := range acknowledged + 1 {
			got, err := s.Client().Get(t.Context(), fmt.Sprintf("k%d", i))
			if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != strconv.Itoa(i) {
				t.Errorf("round %d: k%d was acknowledged and is lost: %v, %v", round, i, got, err)
			}
		}
		s.Close()
	}
}

// killedWriter runs a writer, kills it after some writes, and returns the last that was acknowledged.
func killedWriter(t *testing.T, dir string, writes int) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	buffer := make([]byte, 256)
	for strings.Count(lines.String(), "\n") < writes {
		n, err := out.Read(buffer)
		lines.Write(buffer[:n])
		if err != nil {
			t.Fatalf("the writer ended by itself: %v", err)
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	complete := lines.String()[:strings.LastIndexByte(lines.String(), '\n')]
	last, err := strconv.Atoi(complete[strings.LastIndexByte(complete, '\n')+1:])
	if err != nil {
		t.Fatal(err)
	}
	return last
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
