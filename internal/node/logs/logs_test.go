package logs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ line, stream, text, err string }{
		{"2026-11-30T12:00:00.5Z stdout F hello world\n", "stdout", "hello world", ""},
		{"2026-11-30T12:00:00.5+01:00 stderr P:x part", "stderr", "part", ""},
		{"2026-11-30T12:00:00Z stdout F \n", "stdout", "", ""},
		{"2026-11-30T12:00:00Z stdout F", "stdout", "", ""},
		{"", "", "", "no timestamp"},
		{"yesterday stdout F x", "", "", "yesterday"},
		{"2026-11-30T12:00:00Z stdin F x", "", "", "stdout or stderr"},
		{"2026-11-30T12:00:00Z stdout Q x", "", "", "F or P"},
	} {
		e, err := Parse([]byte(c.line))
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q in it", c.line, err, c.err)
			}
			continue
		}
		if err != nil || string(e.Stream) != c.stream || string(e.Text) != c.text {
			t.Errorf("%q: %+v, %v", c.line, e, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("2026-11-30T12:00:00.5Z stdout F hello\n"))
	f.Add([]byte("2026-11-30T12:00:00.5Z stderr P "))
	f.Add([]byte(" "))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err == nil && !bytes.Contains(line, e.Text) {
			t.Errorf("text %q is not of the line %q", e.Text, line)
		}
	})
}

var base = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func entry(i int, stream, tag, text string) string {
	return fmt.Sprintf("%s %s %s %s\n", base.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano), stream, tag, text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, entry(0, "stdout", "F", "one")+entry(1, "stderr", "F", "two")+"rubbish\n"+
		entry(2, "stdout", "P", "th")+entry(3, "stdout", "F", "ree")+entry(4, "stdout", "F", "four")+"2026-11-30T12:00:09Z stdout F unfini")
	all := Options{Tail: -1, Limit: -1}
	with := func(change func(*Options)) Options { o := all; change(&o); return o }
	for name, c := range map[string]struct {
		o        Options
		out, err bool
		want     string
	}{
		"all":    {all, true, true, "one\ntwo\nthree\nfour\n"},
		"stdout": {all, true, false, "one\nthree\nfour\n"},
		"stderr": {all, false, true, "two\n"},
		"tail":   {with(func(o *Options) { o.Tail = 2 }), true, true, "four\n"},
		"tail 0": {with(func(o *Options) { o.Tail = 0 }), true, true, ""},
		"since":  {with(func(o *Options) { o.Since = base.Add(4 * time.Second) }), true, true, "four\n"},
		"limit":  {with(func(o *Options) { o.Limit = 6 }), true, true, "one\ntw"},
		"times": {with(func(o *Options) { o.Timestamps = true }), true, false,
			"2026-11-30T12:00:00.000000000Z one\n2026-11-30T12:00:02.000000000Z three\n2026-11-30T12:00:04.000000000Z four\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			var stdout, stderr *bytes.Buffer
			if c.out {
				stdout = &got
			}
			if c.err {
				stderr = &got
			}
			if err := readTo(t.Context(), path, c.o, stdout, stderr); err != nil {
				t.Fatal(err)
			}
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
		})
	}
}

func readTo(ctx context.Context, path string, o Options, stdout, stderr *bytes.Buffer) error {
	switch {
	case stdout == nil:
		return Read(ctx, path, o, nil, stderr)
	case stderr == nil:
		return Read(ctx, path, o, stdout, nil)
	default:
		return Read(ctx, path, o, stdout, stderr)
	}
}

// lineSink hands over each line that is written to it.
type lineSink chan string

func (s lineSink) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

func TestFollowAcrossRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, entry(0, "stdout", "F", "one"))
	ended := make(chan struct{})
	lines := make(lineSink)
	done := make(chan error, 1)
	go func() {
		done <- Read(t.Context(), path, Options{Tail: -1, Limit: -1, Follow: true, Ended: ended}, lines, lines)
	}()
	expect := func(want string) {
		t.Helper()
		if got := <-lines; got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect("one\n")
	write(t, path, entry(1, "stdout", "F", "two"))
	expect("two\n")
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	write(t, path+".old", entry(2, "stdout", "F", "late"))
	expect("late\n")
	write(t, path, entry(3, "stdout", "F", "new"))
	expect("new\n")
	write(t, path, entry(4, "stdout", "F", "last"))
	expect("last\n")
	close(ended)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestFollowStopsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, path, Options{Tail: -1, Limit: -1, Follow: true}, &bytes.Buffer{}, nil); err != context.Canceled {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// The tail of n lines is the last n lines of the whole, whatever the lines' lengths are.
func TestTailIsEndOfAll(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		lengths := rapid.SliceOfN(rapid.IntRange(0, 3*block/2), 0, 20).Draw(rt, "lengths")
		n := rapid.IntRange(0, 22).Draw(rt, "n")
		var text strings.Builder
		var want []string
		for i, l := range lengths {
			line := strings.Repeat("x", l)
			want = append(want, line+"\n")
			text.WriteString(entry(i, "stdout", "F", line))
		}
		path := filepath.Join(dir, "x.log")
		if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
			rt.Fatal(err)
		}
		var got bytes.Buffer
		if err := Read(context.Background(), path, Options{Tail: int64(n), Limit: -1}, &got, nil); err != nil {
			rt.Fatal(err)
		}
		if expect := strings.Join(want[max(0, len(want)-n):], ""); got.String() != expect {
			rt.Fatalf("got %d bytes, want %d", got.Len(), len(expect))
		}
	})
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	write(t, path, entry(0, "stdout", "F", "one")+entry(1, "stderr", "F", "two")+entry(2, "stdout", "F", "three"))
	for _, c := range []struct {
		lines, limit int
		want         string
	}{{2, 100, "two\nthree\n"}, {80, 2048, "one\ntwo\nthree\n"}, {80, 6, "three\n"}} {
		if got, err := Tail(path, c.lines, c.limit); err != nil || got != c.want {
			t.Errorf("Tail(%d, %d) = %q, %v; want %q", c.lines, c.limit, got, err, c.want)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	line := []byte(entry(0, "stdout", "F", strings.Repeat("x", 100)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
