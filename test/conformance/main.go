// Command conformance runs the conformance tests of Kubernetes against a cluster of our own, and says which passed.
//
// classes.tsv lists the tests by what a cluster must have for them: a needs the API alone, b controllers, c scheduler and nodes (simulated ones do), d real
// containers, e a pod network with services and DNS. A run starts `bayplan up` with a data directory of its own, lets ginkgo run the classes' tests,
// reads ginkgo's report, and writes one line a test to results.tsv. It fails when a test fails that expected.tsv does not name, and when one passes that it names.
//
//	go run . -class a,b -bayplan ../../bin/bayplan -reference $(../../build/reference.sh e2e.test ginkgo kubectl)
//
// Class c runs on simulated nodes; simulated.yaml says what the pods of its tests do:
//
//	go run . -class c -up "--nodes 0 --sim-nodes 3 --sim-rules simulated.yaml" ...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

type options struct {
	classes, focus     string
	bayplan, reference string
	up                 string
	kubeconfig         string
	procs              int
	out                string
	serial             bool
}

func main() {
	o := options{}
	flag.StringVar(&o.classes, "class", "a", "Classes to run, separated by commas.")
	flag.StringVar(&o.focus, "focus", "", "Run only tests whose name contains this text.")
	flag.StringVar(&o.bayplan, "bayplan", "../../bin/bayplan", "The program under test.")
	flag.StringVar(&o.reference, "reference", "", "Folder with e2e.test, ginkgo and kubectl (build/reference.sh prints it).")
	flag.StringVar(&o.up, "up", "--nodes 0", "Arguments of bayplan up.")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "A cluster that runs already, instead of starting one; -up then only says whether it has nodes.")
	flag.IntVar(&o.procs, "procs", 8, "How many tests run at once.")
	flag.StringVar(&o.out, "out", "", "Folder for reports. (default a temporary one)")
	flag.BoolVar(&o.serial, "serial", true, "Run also the tests that must run alone, after the others.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	tests, err := choose("classes.tsv", strings.Split(o.classes, ","), o.focus, o.serial)
	if err != nil {
		return err
	}
	expected, err := readExpected("expected.tsv")
	if err != nil {
		return err
	}
	if o.out == "" {
		if o.out, err = os.MkdirTemp("", "conformance"); err != nil {
			return err
		}
	}
	if o.out, err = filepath.Abs(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	c, err := startCluster(ctx, o)
	if err != nil {
		return err
	}
	if !hasNodes(o.up) {
		if err := c.addNode(ctx, filepath.Join(o.reference, "kubectl")); err != nil {
			return errors.Join(err, c.stop())
		}
	}
	runErr := runTests(ctx, o, c.kubeconfig, tests)
	if err := c.stop(); err != nil {
		return err
	}
	results, err := readReport(filepath.Join(o.out, "report.json"), tests)
	if err != nil {
		return fmt.Errorf("%w (ginkgo: %v)", err, runErr)
	}
	return tell(results, expected, filepath.Join(o.out, "results.tsv"))
}
