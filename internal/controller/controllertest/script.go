package controllertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// Scripts runs each transcript that the pattern finds, with the controllers, and compares what comes of it.
func Scripts(t *testing.T, pattern string, constructors ...Constructor) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			Bubble(t, func(_ *testing.T, e *Env) {
				e.Journal()
				got = e.run(string(text))
			}, constructors...)
			compare(t, file, string(text), got)
		})
	}
}

func compare(t *testing.T, file, want, got string) {
	t.Helper()
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			t.Fatalf("%s:%d: differs (run with -update to rewrite)\nwant: %s\ngot:  %s\n\nall:\n%s", file, i+1, line(w, i), g[i], got)
		}
	}
	t.Fatalf("%s: ends after line %d", file, len(g))
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(the end)"
}

// run carries out the commands of a transcript and returns it with the output that they have now.
//
//	# a comment
//	command arguments
//	input lines
//	----
//	output lines
//	(empty line)
func (e *Env) run(text string) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i := 0; i < len(lines); {
		if trimmed := strings.TrimSpace(lines[i]); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			out.WriteString(lines[i] + "\n")
			i++
			continue
		}
		command := lines[i]
		var input []string
		for i++; i < len(lines) && lines[i] != "----"; i++ {
			input = append(input, lines[i])
		}
		for i++; i < len(lines) && lines[i] != ""; i++ {
		}
		fmt.Fprintln(&out, command)
		for _, l := range input {
			fmt.Fprintln(&out, l)
		}
		fmt.Fprintln(&out, "----")
		out.WriteString(e.command(command, strings.Join(input, "\n")))
	}
	return out.String()
}
