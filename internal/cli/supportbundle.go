package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
)

func newSupportBundle() *cobra.Command {
	var dir, output string
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect what is needed to find out what is wrong with a cluster",
		Long: "Collect what is needed to find out what is wrong with a cluster into one archive: versions, flags, times of the start, log, goroutines, all objects,\n" +
			"and facts of the machine. It works on a broken or stopped cluster too. The values of Secrets and ConfigMaps, of environment variables and arguments,\n" +
			"and all keys and certificates are left out.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := orDefaultDataDir(dir)
			if err != nil {
				return err
			}
			file, err := os.OpenFile(output, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
			if err != nil {
				return err
			}
			err = cluster.SupportBundle(cmd.Context(), dir, Version, file)
			if err := errors.Join(err, file.Close()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s\n", output)
			return err
		},
	}
	dataDirFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVarP(&output, "output", "o", "bayplan-support.tar.gz", "File to write.")
	return cmd
}
