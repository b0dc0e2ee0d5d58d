package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/component-base/version"
)

// Version is bayplan's own version; the Makefile sets it.
var Version = "v0.0.0-unknown"

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of bayplan and of the Kubernetes API that it serves",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := version.Get()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "bayplan %s (Kubernetes %s, %s, %s)\n", Version, info.GitVersion, info.GoVersion, info.Platform)
			return err
		},
	}
}
