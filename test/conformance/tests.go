package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// test is a line of classes.tsv.
type test struct{ class, group, name string }

// choose reads the tests of some classes whose name contains focus.
func choose(file string, classes []string, focus string, serial bool) ([]test, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	var out []test
	for n, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) < 3 {
			return nil, fmt.Errorf("%s line %d: want class, group and name, separated by tabs", file, n+1)
		}
		t := test{fields[0], fields[1], fields[2]}
		if slices.Contains(classes, t.class) && strings.Contains(t.name, focus) && (serial || !strings.Contains(t.name, "[Serial]")) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no test of class %s contains %q", strings.Join(classes, ","), focus)
	}
	return out, nil
}

// readExpected reads the failures that are known, with their reasons, by the name of the test.
func readExpected(file string) (map[string]string, error) {
	lines, err := readLines(file)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for n, line := range lines {
		name, reason, ok := strings.Cut(line, "\t")
		if !ok {
			return nil, fmt.Errorf("%s line %d: want a test's name and the reason why it fails, separated by a tab", file, n+1)
		}
		out[name] = reason
	}
	return out, nil
}

func readLines(file string) ([]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	scanner := bufio.NewScanner(f)
	for scanner.Scan() {
		if line := scanner.Text(); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out, scanner.Err()
}
