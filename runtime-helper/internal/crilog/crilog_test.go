package crilog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func fixed() time.Time { return time.Date(2016, 10, 6, 0, 17, 9, 669794202, time.UTC) }

const stamp = "2016-10-06T00:17:09.669794202Z "

func open(t testing.TB) (*Log, func() string) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := Open(path, fixed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log, func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	for name, test := range map[string]struct {
		writes []string
		want   string
	}{
		"one line":              {[]string{"log content 1\n"}, stamp + "stdout F log content 1\n"},
		"two in one write":      {[]string{"a\nb\n"}, stamp + "stdout F a\n" + stamp + "stdout F b\n"},
		"one in three writes":   {[]string{"a", "b", "c\n"}, stamp + "stdout F abc\n"},
		"empty line":            {[]string{"\n"}, stamp + "stdout F \n"},
		"no newline at the end": {[]string{"a\nb"}, stamp + "stdout F a\n" + stamp + "stdout P b\n"},
		"exactly the maximum":   {[]string{long + "\n"}, stamp + "stdout F " + long + "\n"},
		"one more":              {[]string{long + "y\n"}, stamp + "stdout P " + long + "\n" + stamp + "stdout F y\n"},
		"long in pieces":        {[]string{long[:10], long[10:], "y", "\n"}, stamp + "stdout P " + long + "\n" + stamp + "stdout F y\n"},
		"carriage return stays": {[]string{"a\r\n"}, stamp + "stdout F a\r\n"},
		"nothing":               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			log, text := open(t)
			stream := log.Stream("stdout")
			for _, w := range test.writes {
				if n, err := stream.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			stream.Flush()
			if got := text(); got != test.want {
				t.Fatalf("got\n%.300q\nwant\n%.300q", got, test.want)
			}
		})
	}
}

func TestReopenFollowsTheName(t *testing.T) {
	log, text := open(t)
	stream := log.Stream("stderr")
	_, _ = stream.Write([]byte("before\n"))
	if err := os.Rename(log.path, log.path+".1"); err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Write([]byte("still the old file\n"))
	if err := log.Reopen(); err != nil {
		t.Fatal(err)
	}
	_, _ = stream.Write([]byte("after\n"))
	if got, want := text(), stamp+"stderr F after\n"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

// FuzzCutting checks that how the output is cut into writes changes nothing but where parts end, and that nothing is lost.
func FuzzCutting(f *testing.F) {
	f.Add([]byte("a\nb\n\nccc"), uint16(2))
	f.Add(bytes.Repeat([]byte("z"), 3*maxLine+5), uint16(maxLine))
	f.Fuzz(func(t *testing.T, output []byte, size uint16) {
		log, text := open(t)
		stream := log.Stream("stdout")
		for rest := output; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			_, _ = stream.Write(rest[:n])
			rest = rest[n:]
		}
		stream.Flush()
		var got []byte
		for line := range strings.SplitAfterSeq(text(), "\n") {
			if line == "" {
				continue
			}
			content, full := strings.CutPrefix(line, stamp+"stdout F ")
			if !full {
				content = strings.TrimSuffix(strings.TrimPrefix(line, stamp+"stdout P "), "\n")
			}
			if len(content) > maxLine+1 {
				t.Fatalf("a line of %d bytes", len(content))
			}
			got = append(got, content...)
		}
		if !bytes.Equal(got, output) {
			t.Fatalf("read back %q, wrote %q", got, output)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	log, _ := open(b)
	stream := log.Stream("stdout")
	chunk := bytes.Repeat([]byte("GET /index.html 200 1234 0.003s curl/8.0\n"), 100)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = stream.Write(chunk)
	}
}
