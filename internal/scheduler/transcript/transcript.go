// Package transcript drives a scheduler's core by commands, for tests: what came of them is kept beside them in a file, so
// that a change of behaviour is read as a difference.
//
//	node n1 cpu=4
//	pod a cpu=1
//	cycle
//	----
//	a -> n1 (1 of 1 nodes, score 0)
//
// A transcript is a list of blocks: commands, one a line, then a line "----", then their output, then an empty line.
// Lines that begin with # are comments. With -update the tests rewrite the output.
package transcript

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts with what came of the commands")

// Files runs every file that matches the pattern.
func Files(t *testing.T, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts match %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			check(t, file, func(text string) string { return newScript(t).run(text) })
		})
	}
}

// sections are those that every plugin's README has, in this order.
var sections = []string{"## What it does", "## Arguments", "## Reasons", "## Example"}

// README runs the example of README.md in the test's folder, and sees to it that the file has the sections that every
// plugin's has. The example is the block between "```transcript" and "```".
func README(t *testing.T, name string) {
	const open, end = "```transcript\n", "```\n"
	check(t, "README.md", func(text string) string {
		if !strings.HasPrefix(text, "# "+name+"\n") {
			t.Errorf("README.md does not begin with the plugin's name, %s", name)
		}
		at := 0
		for _, section := range sections {
			next := strings.Index(text, section+"\n")
			if next < at {
				t.Fatalf("README.md lacks the section %q, or has it in the wrong place", section)
			}
			at = next
		}
		before, rest, found := strings.Cut(text, open)
		example, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatal("README.md has no transcript as an example")
		}
		return before + open + newScript(t).run(example) + end + after
	})
}

// check compares a file with what running it gives, or rewrites it.
func check(t *testing.T, file string, run func(string) string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := run(string(want))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != string(want) {
		t.Errorf("%s: what came of the commands has changed (go test -update rewrites it):\n%s", file, got)
	}
}
