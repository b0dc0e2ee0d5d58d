package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestFlagValuesHaveNoSecrets(t *testing.T) {
	o, flags := &clusterOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(flags)
	err := flags.Parse([]string{"--etcd-endpoints", "https://ann:pass@a:2379,https://b:2379", "--etcd-endpoints=https://to:k%2Fen@c", "--port=0", "--data-dir", "/d@x"})
	if err != nil {
		t.Fatal(err)
	}
	values := flagValues(flags)
	for name, want := range map[string]string{
		"etcd-endpoints": "[https://(left out)@a:2379,https://b:2379,https://(left out)@c]", "port": "0", "data-dir": "/d@x", "bind-address": "127.0.0.1", "etcd-keyfile": "",
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("--%s: %q, want %q", name, got, want)
		}
	}
	for name, value := range values {
		if strings.Contains(value, "pass") || strings.Contains(value, "k%2Fen") {
			t.Errorf("--%s tells a secret: %s", name, value)
		}
	}
}

// TestFlagsOfAllCommands: no usage shows a command as the type of a flag, as words between backquotes would, and each flag has the default value that it was declared with: two
// commands that share a variable would give both the default of the last.
func TestFlagsOfAllCommands(t *testing.T) {
	root := newRoot()
	visit(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); strings.Contains(kind, " ") {
				t.Errorf("%s --%s: its type is shown as %q", cmd.CommandPath(), f.Name, kind)
			}
			if f.Value.String() != f.DefValue {
				t.Errorf("%s --%s is %q, and its default %q", cmd.CommandPath(), f.Name, f.Value, f.DefValue)
			}
		})
	})
}

func visit(cmd *cobra.Command, each func(*cobra.Command)) {
	each(cmd)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "kubectl" {
			visit(sub, each)
		}
	}
}
