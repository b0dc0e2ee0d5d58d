package testcluster_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd"

	"github.com/bayplan/bayplan/testcluster"
)

// asKubectl makes the test's own binary be kubectl: there need not be one on the machine.
const asKubectl = "TESTCLUSTER_AS_KUBECTL"

func TestMain(m *testing.M) {
	if os.Getenv(asKubectl) == "" {
		os.Exit(m.Run())
	}
	if err := cmd.NewDefaultKubectlCommand().Execute(); err != nil {
		os.Exit(1)
	}
}

var fence = regexp.MustCompile("(?ms)^```(yaml|console)\n(.*?)^```$")

// TestWorkloads does what docs/workloads.md shows, from top to bottom.
func TestWorkloads(t *testing.T) {
	text, err := os.ReadFile("../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	cluster := testcluster.Start(t)
	play(t, kubernetes.NewForConfigOrDie(cluster.Config()), "node-1", "node-2")
	shell := &shell{t: t, kubeconfig: cluster.Kubeconfig()}
	blocks := fence.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 16 {
		t.Fatalf("found %d examples only", len(blocks))
	}
	for _, block := range blocks {
		if block[1] == "yaml" {
			shell.kubectl(block[2], "apply", "-f", "-")
			continue
		}
		for step := range strings.SplitSeq(strings.TrimPrefix(block[2], "$ "), "\n$ ") {
			command, want, _ := strings.Cut(step, "\n")
			shell.check(command, want)
		}
	}
}

// shell runs the commands of the page.
type shell struct {
	t          *testing.T
	kubeconfig string
}

// check runs a command and compares what it prints. Of progress that is told on the way only the end is compared.
func (s *shell) check(command, want string) {
	s.t.Helper()
	command, count := strings.CutSuffix(command, " | wc -l")
	got := s.kubectl("", strings.Fields(strings.TrimPrefix(command, "kubectl "))...)
	got, want = strings.TrimSpace(got), strings.TrimSpace(want)
	if count {
		got = string(rune('0' + len(strings.Split(got, "\n"))))
	}
	if strings.Contains(command, "rollout status") {
		got = got[strings.LastIndex(got, "\n")+1:]
	}
	if got != want {
		s.t.Errorf("$ %s\n%s\nwant\n%s", command, got, want)
	}
}

func (s *shell) kubectl(input string, args ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = append(os.Environ(), asKubectl+"=1", "KUBECONFIG="+s.kubeconfig)
	command.Stdin = strings.NewReader(input)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}
