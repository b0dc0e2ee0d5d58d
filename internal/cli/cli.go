// Package cli is bayplan's command line. Each command is a file: its options, Complete (fill in what was not said), Validate (refuse what makes no sense) and Run.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/klog/v2"
)

// Main runs the program and returns its exit code.
func Main(args []string) int {
	// kubectl owns global flags and ends the process by itself: it runs before anything else is set up.
	if len(args) > 1 && args[1] == "kubectl" {
		return kubectl(args[1:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args[1:])
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	logging := logsapi.NewLoggingConfiguration()
	root := &cobra.Command{
		Use:           "bayplan",
		Short:         "A Kubernetes-compatible cluster in one program",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return applyLogging(logging)
		},
	}
	// Warnings and errors are what a user wants to see; -v shows more.
	flags := pflag.NewFlagSet("logging", pflag.ContinueOnError)
	logsapi.AddFlags(logging, flags)
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "v" && f.Name != "logging-format" })
	root.PersistentFlags().AddFlagSet(flags)
	root.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	root.AddCommand(newUp(), newServer(), newDown(), newSnapshot(), newSupportBundle(), newVersion(), newKubectlHelp(), newImage(), newExplain(), newNode())
	klog.EnableContextualLogging(true)
	return root
}

// applyLogging sets logging up. Unless -v asks for more, people see warnings and errors only: the libraries tell a lot about themselves.
func applyLogging(logging *logsapi.LoggingConfiguration) error {
	if err := logsapi.ValidateAndApply(logging, nil); err != nil {
		return err
	}
	if logging.Verbosity > 0 || logging.Format != logsapi.DefaultLogFormat {
		return nil
	}
	klog.ClearLogger()
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	klog.SetOutput(io.Discard)
	return errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "WARNING"))
}
