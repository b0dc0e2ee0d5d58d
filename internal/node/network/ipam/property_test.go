package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// model is the pool as a test understands it.
type model struct {
	path   string
	prefix netip.Prefix
	pool   *Pool
	all    []netip.Addr // that may be handed out, in order
	taken  map[string]netip.Addr
	ever   map[netip.Addr]bool
	freed  []netip.Addr
	synced int64 // of the file: what a crash can't take
}

func newModel(t *rapid.T, dir string) *model {
	m := &model{
		path:   filepath.Join(dir, "pool"),
		prefix: netip.PrefixFrom(netip.MustParseAddr("10.1.2.128"), rapid.IntRange(27, 30).Draw(t, "bits")),
		taken:  map[string]netip.Addr{},
		ever:   map[netip.Addr]bool{},
	}
	count := 1<<(32-m.prefix.Bits()) - 3
	for addr := First(m.prefix).Next(); len(m.all) < count; addr = addr.Next() {
		m.all = append(m.all, addr)
	}
	m.open(t)
	return m
}

func (m *model) open(t *rapid.T) {
	pool, err := Open(m.path, m.prefix)
	if err != nil {
		t.Fatal(err)
	}
	m.pool, m.synced = pool, pool.size
}

// want is the address that has to come next: never used, else free for the longest time.
func (m *model) want() (netip.Addr, bool) {
	for _, addr := range m.all {
		if !m.ever[addr] {
			return addr, true
		}
	}
	if len(m.freed) > 0 {
		return m.freed[0], true
	}
	return netip.Addr{}, false
}

func (m *model) take(t *rapid.T) {
	owner := rapid.StringMatching(`s[0-9]{1,2}`).Draw(t, "owner")
	got, err := m.pool.Take(owner)
	if had, ok := m.taken[owner]; ok {
		if err != nil || got != had {
			t.Fatalf("%s had %s and now gets %s, %v", owner, had, got, err)
		}
		return
	}
	want, ok := m.want()
	if !ok {
		if !errors.Is(err, ErrExhausted) {
			t.Fatalf("all %d are taken, and %s gets %s, %v", len(m.all), owner, got, err)
		}
		return
	}
	if err != nil || got != want {
		t.Fatalf("%s gets %s, %v; want %s", owner, got, err, want)
	}
	m.taken[owner], m.ever[got] = got, true
	m.freed = slices.DeleteFunc(m.freed, func(a netip.Addr) bool { return a == got })
	m.synced = m.pool.size
}

func (m *model) free(t *rapid.T) {
	owner := rapid.StringMatching(`s[0-9]{1,2}`).Draw(t, "owner")
	if err := m.pool.Free(owner); err != nil {
		t.Fatal(err)
	}
	if addr, ok := m.taken[owner]; ok {
		delete(m.taken, owner)
		m.freed = append(m.freed, addr)
	}
}

// crash loses any part of what was not forced to disk. An address may then still have its owner, never two.
func (m *model) crash(t *rapid.T) {
	m.pool.Close()
	size := rapid.Int64Range(m.synced, m.pool.size).Draw(t, "size")
	if err := os.Truncate(m.path, size); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	for owner, addr := range m.taken {
		if got, ok := m.pool.Lookup(owner); !ok || got != addr {
			t.Fatalf("after the crash %s has %s instead of %s", owner, got, addr)
		}
	}
	for _, owner := range m.pool.Owners() { // reconcile, as the caller does
		if _, ok := m.taken[owner]; !ok {
			m.freed = slices.DeleteFunc(m.freed, func(a netip.Addr) bool { return a == m.pool.owners[owner] })
			m.freed = append(m.freed, m.pool.owners[owner])
			if err := m.pool.Free(owner); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (m *model) check(t *rapid.T) {
	if len(m.taken) != len(m.pool.Owners()) {
		t.Fatalf("owners %v, want %v", m.pool.Owners(), m.taken)
	}
	holders := map[netip.Addr]string{}
	for owner, addr := range m.taken {
		if other, ok := holders[addr]; ok {
			t.Fatalf("%s and %s both have %s", owner, other, addr)
		}
		holders[addr] = owner
		if !slices.Contains(m.all, addr) {
			t.Fatalf("%s has %s, which is not to be handed out", owner, addr)
		}
	}
}

func TestPoolProperties(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		m := newModel(t, dir)
		defer func() { m.pool.Close() }()
		t.Repeat(map[string]func(*rapid.T){"": m.check, "take": m.take, "take2": m.take, "free": m.free, "crash": m.crash})
	})
}

// What replay accepts it must be able to write and read again with the same meaning.
func FuzzReplay(f *testing.F) {
	f.Add([]byte("take a 10.0.0.2\nfree 10.0.0.3\ntake b 10.0.0.3\nfree 10.0.0.2\n"))
	f.Add([]byte("free 10.0.0.2\ntake a 192.168.1.1\nfree 192.168.1.1\ntake c fd00::1\ntake"))
	f.Fuzz(func(t *testing.T, data []byte) {
		prefix := netip.MustParsePrefix("10.0.0.0/28")
		first, err := replay(data, prefix)
		if err != nil {
			return
		}
		second, err := replay(first.snapshot(), prefix)
		if err != nil {
			t.Fatalf("%q: the short form is not accepted: %v", data, err)
		}
		if fmt.Sprint(first.owners) != fmt.Sprint(second.owners) || !slices.Equal(first.freed, second.freed) {
			t.Fatalf("%q: %v, %v became %v, %v", data, first.owners, first.freed, second.owners, second.freed)
		}
		a, okA := first.candidate()
		if b, okB := second.candidate(); a != b || okA != okB {
			t.Fatalf("%q: next is %v, then %v", data, a, b)
		}
	})
}

func TestLogStaysShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool")
	pool, err := Open(path, netip.MustParsePrefix("10.0.0.0/29"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for i := range 2 * compactSlack {
		owner := fmt.Sprintf("s%d", i)
		if _, err := pool.Take(owner); err != nil {
			t.Fatal(err)
		}
		if err := pool.Free(owner); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 40*compactSlack {
		t.Errorf("the log has %d bytes, %v", info.Size(), err)
	}
}

func TestTakeAtOnce(t *testing.T) {
	pool, err := Open(filepath.Join(t.TempDir(), "pool"), netip.MustParsePrefix("10.0.0.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var mu sync.Mutex
	seen := map[netip.Addr]bool{}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			addr, err := pool.Take(fmt.Sprintf("s%d", i))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || seen[addr] {
				t.Errorf("%s, %v", addr, err)
			}
			seen[addr] = true
		})
	}
	wg.Wait()
}

func TestRefusals(t *testing.T) {
	if _, err := Open(filepath.Join(t.TempDir(), "pool"), netip.Prefix{}); err == nil {
		t.Error("Open without a prefix succeeds")
	}
	pool, err := Open(filepath.Join(t.TempDir(), "pool"), netip.MustParsePrefix("10.0.0.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	for _, owner := range []string{"", "a b", "a\nfree 10.0.0.2"} {
		if addr, err := pool.Take(owner); err == nil {
			t.Errorf("owner %q gets %s", owner, addr)
		}
	}
	if _, err := pool.Take("a"); err != nil {
		t.Error(err)
	}
	pool.Close()
	if err := pool.Free("a"); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Free after Close: %v", err)
	}
}

func BenchmarkTakeFree(b *testing.B) {
	pool, err := Open(filepath.Join(b.TempDir(), "pool"), netip.MustParsePrefix("10.0.0.0/24"))
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pool.Take("sandbox"); err != nil {
			b.Fatal(err)
		}
		if err := pool.Free("sandbox"); err != nil {
			b.Fatal(err)
		}
	}
}
