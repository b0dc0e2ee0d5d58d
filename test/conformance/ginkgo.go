package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// runTests lets ginkgo run the tests; the report says what came of them.
func runTests(ctx context.Context, o options, kubeconfig string, tests []test) error {
	log, err := os.Create(filepath.Join(o.out, "ginkgo.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	nodes := []string{"--allowed-not-ready-nodes=0"}
	if !hasNodes(o.up) {
		nodes = []string{"--allowed-not-ready-nodes=-1", "--num-nodes=1"}
	}
	command := exec.CommandContext(ctx, filepath.Join(o.reference, "ginkgo"), append([]string{
		fmt.Sprintf("--procs=%d", o.procs), "--timeout=60m", "--no-color", "--output-dir=" + o.out, "--json-report=report.json", "--focus=" + focus(tests),
		filepath.Join(o.reference, "e2e.test"), "--",
		"--kubeconfig=" + kubeconfig, "--provider=skeleton", "--kubectl-path=" + filepath.Join(o.reference, "kubectl"), "--minStartupPods=0",
		"--system-pods-startup-timeout=1m", "--node-schedulable-timeout=1m", "--node-os-distro=debian", "--dump-logs-on-failure=false",
		"--disable-log-dump=true", "--non-blocking-taints=", "--report-dir=" + o.out, "--delete-namespace=true",
	}, nodes...)...)
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = time.Minute
	begun := time.Now()
	err = command.Run()
	fmt.Printf("%d tests of class %s ran for %s; logs and reports are in %s\n", len(tests), o.classes, time.Since(begun).Round(time.Second), o.out)
	return err
}

func hasNodes(up string) bool {
	fields := strings.Fields(strings.ReplaceAll(up, "=", " "))
	for i, f := range fields[:max(len(fields)-1, 0)] {
		if (f == "--nodes" || f == "--sim-nodes") && fields[i+1] != "0" {
			return true
		}
	}
	return false
}

// focus is a regular expression of exactly the tests' names.
func focus(tests []test) string {
	var names []string
	for _, t := range tests {
		names = append(names, regexp.QuoteMeta(t.name))
	}
	return strings.Join(names, "|")
}
