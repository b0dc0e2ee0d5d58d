package all

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every controller's folder has a README with the same sections, a transcript test, and names in the README every event that its transcripts show.
func TestFoldersHaveTheSameShape(t *testing.T) {
	seen := regexp.MustCompile(`(?m)^\S+ event (?:Normal|Warning) on \S+: (\w+) `)
	files, err := filepath.Glob("../*/README.md")
	if err != nil || len(files) != len(Table()) {
		t.Fatalf("there are %d READMEs for %d controllers (%v)", len(files), len(Table()), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		readme, at := string(text), 0
		for _, section := range []string{"\n## Watches\n", "\n## Writes\n", "\n## Events\n", "\n## Rules\n"} {
			i := strings.Index(readme, section)
			if i < at {
				t.Errorf("%s: section %q is missing or out of order", file, strings.TrimSpace(section))
			}
			at = i
		}
		transcripts, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "testdata", "*.txt"))
		for _, transcript := range transcripts {
			script, err := os.ReadFile(transcript)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range seen.FindAllStringSubmatch(string(script), -1) {
				if strings.Contains(readme, "`"+match[1]+"`") || along[filepath.Base(filepath.Dir(file))+"/"+match[1]] {
					continue
				}
				t.Errorf("%s: the event %s of %s is not named", file, match[1], transcript)
			}
		}
	}
}

// along are events of another controller that runs along in a folder's transcripts.
var along = map[string]bool{
	"deployment/SuccessfulCreate":        true,
	"deployment/SuccessfulDelete":        true,
	"nodelifecycle/TaintManagerEviction": true,
}
