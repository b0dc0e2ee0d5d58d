package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/bayplan/bayplan/internal/cluster"
)

func TestUpRefuses(t *testing.T) {
	for _, test := range []struct {
		config cluster.Config
		want   string
	}{
		{cluster.Config{Nodes: -1}, "--nodes -1"},
		{cluster.Config{Nodes: cluster.MaxNodes + 1}, "--nodes 101"},
		{cluster.Config{Port: 70000}, "--port 70000"},
		{cluster.Config{Port: -1}, "--port -1"},
		{cluster.Config{Port: 6443}, ""},
		{cluster.Config{BindAddress: "localhost"}, "--bind-address"},
		{cluster.Config{BindAddress: "::1"}, ""},
	} {
		if test.config.BindAddress == "" {
			test.config.BindAddress = "127.0.0.1"
		}
		o := &upOptions{clusterOptions: clusterOptions{config: test.config}}
		err := o.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.config, err, test.want)
		}
	}
}

func TestUpWithoutPrivileges(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("runs as root, who may have nodes")
	}
	options := func() *upOptions {
		return &upOptions{clusterOptions: clusterOptions{config: cluster.Config{Nodes: 1, DataDir: t.TempDir(), BindAddress: "127.0.0.1"}, kubeconfig: "x"}}
	}
	o := options()
	if err := o.Complete(newUp()); err != nil || o.config.Nodes != 0 {
		t.Errorf("by default: %d nodes, %v; want none", o.config.Nodes, err)
	}
	o = options()
	asked := newUp()
	if err := asked.Flags().Set("nodes", "1"); err != nil {
		t.Fatal(err)
	}
	if err := o.Complete(asked); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "--nodes 0") {
		t.Errorf("asked for: %v, want an error with the remedy", err)
	}
}

func TestVersionAndHelp(t *testing.T) {
	// Logging can be set up once in a process, so one command only gets as far as that.
	for _, args := range [][]string{{"version"}, {"--help"}, {"up", "--help"}, {"image", "--help"}, {"server", "--help"}, {"down", "--help"}, {"snapshot", "--help"}, {"support-bundle", "--help"}} {
		root := newRoot()
		out := &bytes.Buffer{}
		root.SetOut(out)
		root.SetArgs(args)
		if err := root.Execute(); err != nil || out.Len() == 0 {
			t.Errorf("%v: %v, printed %q", args, err, out)
		}
	}
}

func TestUnknownArgumentsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"upp"}, {"up", "extra"}, {"up", "--no-such-flag"}, {"image", "load"}, {"image", "load", "/no/such/file", "--data-dir", t.TempDir()}} {
		root := newRoot()
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		root.SetArgs(args)
		if err := root.Execute(); err == nil {
			t.Errorf("%v succeeded", args)
		}
	}
}
