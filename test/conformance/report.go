package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// result is what came of a test.
type result struct {
	test
	state   string // passed, failed, skipped, timedout, interrupted, panicked, or missing when ginkgo does not tell
	runTime time.Duration
	message string
}

func (r result) passed() bool { return r.state == "passed" }

// suite is what is read of ginkgo's report.
type suite struct {
	SpecReports []struct {
		ContainerHierarchyTexts []string
		LeafNodeType            string
		LeafNodeText            string
		State                   string
		RunTime                 time.Duration
		Failure                 struct{ Message string }
	}
}

func readReport(file string, tests []test) ([]result, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var suites []suite
	if err := json.Unmarshal(body, &suites); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	found := map[string]result{}
	for _, s := range suites {
		for _, spec := range s.SpecReports {
			if spec.LeafNodeType == "SynchronizedBeforeSuite" && spec.State == "failed" {
				return nil, fmt.Errorf("no test ran: %s", spec.Failure.Message)
			}
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			found[name] = result{state: spec.State, runTime: spec.RunTime, message: spec.Failure.Message}
		}
	}
	var out []result
	for _, t := range tests {
		r, ok := found[t.name]
		if !ok {
			r.state = "missing"
		}
		r.test = t
		out = append(out, r)
	}
	return out, nil
}

// tell prints and writes the results; the error counts what was not expected.
func tell(results []result, expected map[string]string, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	passed, surprises := 0, 0
	for _, r := range results {
		message := strings.Join(strings.Fields(r.message), " ")
		fmt.Fprintf(out, "%s\t%s\t%.1f\t%s\t%s\n", r.class, r.state, r.runTime.Seconds(), r.name, message)
		_, known := expected[r.name]
		switch {
		case r.passed() && known:
			surprises++
			fmt.Printf("PASSES, though expected.tsv names it: %s\n", r.name)
		case !r.passed() && !known:
			surprises++
			fmt.Printf("%s: %s\n    %.300s\n", strings.ToUpper(r.state), r.name, message)
		}
		if r.passed() {
			passed++
		}
	}
	fmt.Printf("%d of %d passed\n", passed, len(results))
	if surprises > 0 {
		return fmt.Errorf("%d results are not as expected", surprises)
	}
	return nil
}
