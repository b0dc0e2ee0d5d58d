package lifecycle

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays testdata/*.txt. A transcript is a row of blocks: a command line (and lines that belong to it), a line of four
// dashes, and what came of it up to an empty line. Lines that begin with # and stand between blocks are kept.
//
//	pod              the pod as YAML follows; forgets everything
//	step             decide, carry the actions out, until there is nothing to do
//	decide           decide once, carry nothing out
//	after 10s        move the clock, then step
//	exit NAME CODE [REASON]   a container ends, then step
//	fail NAME [REASON MESSAGE]  starts of this container fail (or work again), then step
//	probe NAME started|ready|unready|liveness|startup   a probe result, then step
//	delete [SECONDS] | gone | sandbox-dies | forget | hold | release
//	evict            the agent ends the pod
//	status           the whole status as YAML
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(data))
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, data) {
				t.Errorf("%s differs; -update rewrites it. Got:\n%s", file, got)
			}
		})
	}
}

func replay(t *testing.T, text string) []byte {
	var out bytes.Buffer
	w := newWorld()
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] == "" || strings.HasPrefix(lines[i], "#") {
			if i < len(lines)-1 || lines[i] != "" {
				fmt.Fprintln(&out, lines[i])
			}
			continue
		}
		command, body := lines[i], []string{}
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			body = append(body, lines[i])
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
		}
		i--
		fmt.Fprintln(&out, command)
		for _, l := range body {
			fmt.Fprintln(&out, l)
		}
		fmt.Fprintf(&out, "----\n%s", w.command(t, strings.Fields(command), strings.Join(body, "\n")))
	}
	return out.Bytes()
}
