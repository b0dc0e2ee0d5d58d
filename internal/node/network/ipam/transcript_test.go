package ipam

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// Transcripts hold commands and, behind "> ", what came of them.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := runTranscript(t, string(data))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(data) {
				t.Errorf("the transcript is now (go test -update rewrites it):\n%s", got)
			}
		})
	}
}

func runTranscript(t *testing.T, script string) string {
	s := &session{path: filepath.Join(t.TempDir(), "pool")}
	t.Cleanup(s.close)
	var out strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(line, ">") {
			continue
		}
		out.WriteString(line)
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			for answer := range strings.Lines(s.run(fields[0], fields[1:])) {
				fmt.Fprintf(&out, "> %s\n", strings.ReplaceAll(strings.TrimSuffix(answer, "\n"), s.path, "FILE"))
			}
		}
	}
	return out.String()
}

// session is one pool under the commands of a transcript.
type session struct {
	path string
	pool *Pool
}

func (s *session) close() {
	if s.pool != nil {
		s.pool.Close()
	}
}

func (s *session) run(command string, args []string) string {
	switch command {
	case "open":
		s.close()
		pool, err := Open(s.path, netip.MustParsePrefix(args[0]))
		if err != nil {
			return err.Error()
		}
		s.pool = pool
	case "take":
		return s.each(args, s.pool.Take)
	case "free":
		return s.each(args, func(owner string) (netip.Addr, error) { return netip.Addr{}, s.pool.Free(owner) })
	case "owners":
		return strings.Join(s.pool.Owners(), " ")
	case "append": // what a crash or a careless hand leaves at the end of the file
		return s.edit(func(data []byte) []byte {
			return append(data, strings.ReplaceAll(strings.Join(args, " "), `\n`, "\n")...)
		})
	case "file":
		data, err := os.ReadFile(s.path)
		return string(data) + message(err)
	default:
		return "unknown command"
	}
	return ""
}

func (s *session) each(owners []string, do func(string) (netip.Addr, error)) string {
	var answers []string
	for _, owner := range owners {
		switch addr, err := do(owner); {
		case err != nil:
			answers = append(answers, err.Error())
		case addr.IsValid():
			answers = append(answers, owner+" "+addr.String())
		}
	}
	return strings.Join(answers, "\n")
}

func (s *session) edit(change func([]byte) []byte) string {
	s.close()
	data, err := os.ReadFile(s.path)
	return message(errors.Join(err, os.WriteFile(s.path, change(data), 0o600)))
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
