package store

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var (
	rounds = flag.Int("rounds", 20, "How often the writers are killed.")
	cuts   = flag.Int("cuts", 200, "At how many places the write-ahead log is cut.")
)

// writerDir makes this test binary a process that writes until it is killed, and says what was acknowledged.
const writerDir = "STORE_TEST_WRITER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		write(dir)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// writers is how many write at once, each to keys of its own.
const writers = 4

// write puts and deletes until the process is killed. Before each operation it says what it begins ("w i"), and after it that it is acknowledged ("w ok i").
// Operation i of writer w puts i into key w/(i mod 7); each third one deletes that key.
func write(dir string) {
	s, err := Open(context.Background(), Options{Dir: dir, CompactionInterval: time.Hour, ReadyTimeout: time.Minute})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	from, padding := number("STORE_TEST_FROM"), strings.Repeat(" ", number("STORE_TEST_PADDING"))
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := from; ; i++ {
				say("%d begins %d", w, i)
				key := fmt.Sprintf("%d/%d", w, i%7)
				if i%3 == 2 {
					_, err = s.Client().Delete(context.Background(), key)
				} else {
					_, err = s.Client().Put(context.Background(), key, strconv.Itoa(i)+padding)
				}
				if err != nil {
					panic(err)
				}
				say("%d ok %d", w, i)
			}
		})
	}
	group.Wait()
}

// number reads a variable of the environment by which the test configures the writer.
func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return n
}

// model is what the store must hold: per key the value after the last acknowledged operation, and the one that may have come after it.
type model struct {
	sure map[string]string
	// maybe are operations that began and were not acknowledged: key to value, empty for a deletion.
	maybe map[string]string
	next  int
}

func (m *model) apply(line string) {
	fields := strings.Fields(line)
	i, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil || len(fields) != 3 {
		panic("the writer says " + line)
	}
	key, value := fmt.Sprintf("%s/%d", fields[0], i%7), strconv.Itoa(i)
	if i%3 == 2 {
		value = ""
	}
	m.next = max(m.next, i+1)
	if fields[1] == "begins" {
		m.maybe[key] = value
		return
	}
	delete(m.maybe, key)
	m.sure[key] = value
}

// check compares, and takes what is there for certain from now on.
func (m *model) check(t *testing.T, s *Store) {
	t.Helper()
	got, err := s.Client().Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]string{}
	for _, kv := range got.Kvs {
		there[string(kv.Key)] = strings.TrimRight(string(kv.Value), " ")
		if _, known := m.sure[string(kv.Key)]; !known {
			if _, begun := m.maybe[string(kv.Key)]; !begun {
				t.Errorf("%s was never written", kv.Key)
			}
		}
	}
	for key, want := range m.sure {
		if maybe, begun := m.maybe[key]; there[key] != want && !(begun && there[key] == maybe) {
			t.Errorf("%s is %q; %q was acknowledged", key, there[key], want)
		}
	}
	m.sure, m.maybe = there, map[string]string{}
}

// TestKilledWriters: what was acknowledged before kill -9 is there afterwards, and what was deleted stays away, in many rounds on one directory.
func TestKilledWriters(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	m := &model{sure: map[string]string{}, maybe: map[string]string{}}
	for range *rounds {
		killedWriters(t, dir, m, 20+random.IntN(600))
		s := open(t, dir)
		m.check(t, s)
		s.Close()
	}
	if m.next < *rounds {
		t.Errorf("only %d operations", m.next)
	}
}

func writerCommand(dir string, from, padding int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+dir, fmt.Sprint("STORE_TEST_FROM=", from), fmt.Sprint("STORE_TEST_PADDING=", padding))
	return cmd
}

// killedWriters runs the writers, and kills them after they said so many lines.
func killedWriters(t *testing.T, dir string, m *model, lines int) {
	t.Helper()
	cmd := writerCommand(dir, m.next, 0)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(out)
	for said := 0; ; said++ {
		line, err := reader.ReadString('\n')
		if err != nil {
			break // what was said before the end counts, too
		}
		m.apply(strings.TrimSuffix(line, "\n"))
		if said == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("the writer ended by itself: %s", cmd.ProcessState)
	}
}

// TestCutLog: the write-ahead log of a copy is cut at random places. Each write is there whose record in the log lies before the cut: what was acknowledged when
// the log was so long. The store opens in each case.
func TestCutLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	ends := cutFixture(t, dir)
	log := onlyLog(t, dir)
	last := ends[len(ends)-1]
	var group sync.WaitGroup
	for worker := range 2 {
		random := rand.New(rand.NewPCG(3, uint64(worker)))
		group.Go(func() {
			for range *cuts / 2 {
				cut := ends[0] + random.Int64N(last-ends[0]+1)
				checkCut(t, dir, log, ends, cut)
			}
		})
	}
	group.Wait()
}

// cutFixture writes keys one after the other and notes how long the log was when each was acknowledged; ends[i] is that of key i. It leaves a database from before
// the writes beside the log of all of them: etcd's database is never ahead of its log.
func cutFixture(t *testing.T, dir string) []int64 {
	t.Helper()
	open(t, dir).Close()
	before := dir + "-before"
	if err := os.CopyFS(before, sparse{os.DirFS(dir)}); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	var ends []int64
	for i := range 100 {
		put(t, s, fmt.Sprintf("k%03d", i), strings.Repeat("x", i*7%300))
		ends = append(ends, used(t, filepath.Join(dir, onlyLog(t, dir))))
	}
	log := onlyLog(t, dir)
	data := make([]byte, ends[len(ends)-1])
	file, err := os.Open(filepath.Join(dir, log))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := os.WriteFile(filepath.Join(before, log), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(before, dir); err != nil {
		t.Fatal(err)
	}
	return ends
}

// used is how much of a preallocated log is records, which are padded to eight bytes.
func used(t *testing.T, path string) int64 {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data := make([]byte, 1<<20)
	n, _ := file.ReadAt(data, 0)
	return int64(len(bytes.TrimRight(data[:n], "\x00"))+7) / 8 * 8
}

func onlyLog(t *testing.T, dir string) string {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v; want one log", logs, err)
	}
	name, _ := filepath.Rel(dir, logs[0])
	return name
}

// sparse leaves out what etcd takes from the disk beforehand.
type sparse struct{ fs.FS }

func (s sparse) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	var out []fs.DirEntry
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			out = append(out, e)
		}
	}
	return out, err
}

func checkCut(t *testing.T, dir, log string, ends []int64, cut int64) {
	copied, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(copied)
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Error(err)
		return
	}
	if err := os.Truncate(filepath.Join(copied, log), cut); err != nil {
		t.Error(err)
		return
	}
	s, err := Open(t.Context(), Options{Dir: copied, ReadyTimeout: 20 * time.Second})
	if err != nil {
		t.Errorf("cut at %d: %v", cut, err)
		return
	}
	defer s.Close()
	for i, end := range ends {
		if end > cut {
			break
		}
		if got, err := s.Client().Get(t.Context(), fmt.Sprintf("k%03d", i)); err != nil || len(got.Kvs) != 1 {
			t.Errorf("cut at %d: key %d was acknowledged at %d and is lost: %v", cut, i, end, err)
		}
	}
}
