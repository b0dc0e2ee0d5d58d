package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	all, err := choose("classes.tsv", []string{"a", "b", "c", "d", "e"}, "", true)
	if err != nil || len(all) != 462 {
		t.Fatalf("%d tests, %v; want the 462 of the conformance suite", len(all), err)
	}
	quick, err := choose("classes.tsv", []string{"c"}, "", false)
	if err != nil || len(quick) == 0 || len(quick) >= 76 {
		t.Errorf("%d tests of class c without the serial ones, %v", len(quick), err)
	}
	if _, err := choose("classes.tsv", []string{"a"}, "no such test", true); err == nil {
		t.Error("a focus that fits nothing was accepted")
	}
	expression := regexp.MustCompile(focus(all))
	for _, test := range all {
		if found := expression.FindString(test.name); found == "" {
			t.Errorf("the focus misses %s", test.name)
		}
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	body := `[{"SpecReports": [{"ContainerHierarchyTexts": ["[sig-x] A", "b"], "LeafNodeText": "c [Conformance]", "State": "passed", "RunTime": 2000000000},
		{"ContainerHierarchyTexts": ["[sig-x] A"], "LeafNodeText": "d", "State": "failed", "Failure": {"Message": "it\nbroke"}}]}]`
	if err := os.WriteFile(report, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	results, err := readReport(report, []test{{"a", "g", "[sig-x] A b c [Conformance]"}, {"a", "g", "[sig-x] A d"}, {"a", "g", "e"}})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, r := range results {
		states = append(states, r.state)
	}
	if got := strings.Join(states, " "); got != "passed failed missing" {
		t.Errorf("states: %s", got)
	}
	table := filepath.Join(dir, "results.tsv")
	if err := tell(results, map[string]string{}, table); err == nil || !strings.Contains(err.Error(), "2 results") {
		t.Errorf("%v, want an error that counts two", err)
	}
	if err := tell(results, map[string]string{"[sig-x] A d": "why", "e": "why"}, table); err != nil {
		t.Errorf("expected failures: %v", err)
	}
	if err := tell(results, map[string]string{"[sig-x] A b c [Conformance]": "why", "[sig-x] A d": "why", "e": "why"}, table); err == nil {
		t.Error("a test that passes though it is expected to fail was no surprise")
	}
	written, err := os.ReadFile(table)
	if err != nil || !strings.Contains(string(written), "a\tfailed\t0.0\t[sig-x] A d\tit broke\n") {
		t.Errorf("%s, %v", written, err)
	}
}

func TestHasNodes(t *testing.T) {
	for text, want := range map[string]bool{"--nodes 0": false, "--nodes=2": true, "--nodes 0 --sim-nodes 3": true, "": false} {
		if hasNodes(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
