package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
)

func newSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save the state of a cluster to a file, and restore it",
		Long: "Save the state of a cluster to a file, and restore it. A snapshot holds all objects, and the cluster's keys and certificates, so that\n" +
			"kubeconfigs and tokens work on the restored cluster: keep it as secret as the data directory. Images and volumes are not in it.",
	}
	cmd.AddCommand(newSnapshotSave(), newSnapshotRestore())
	return cmd
}

func newSnapshotSave() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "save FILE", Short: "Save the state of a cluster, whether it runs or not", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := orDefaultDataDir(dir)
			if err != nil {
				return err
			}
			if err := cluster.SaveSnapshot(cmd.Context(), dir, Version, args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "saved %s to %s\n", dir, args[0])
			return err
		},
	}
	dataDirFlag(cmd.Flags(), &dir)
	return cmd
}

func newSnapshotRestore() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make the state of a data directory from a snapshot", Args: cobra.ExactArgs(1),
		Long: "Make the state of a data directory from a snapshot. The directory must not be in use, and must hold no state unless --force is given.\n" +
			"Clients that knew later versions of objects list again: resource versions go on beyond all that were given out.",
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := orDefaultDataDir(dir)
			if err != nil {
				return err
			}
			if err := cluster.RestoreSnapshot(cmd.Context(), dir, args[0], force); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored %s to %s\n", args[0], dir)
			return err
		},
	}
	dataDirFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&force, "force", false, "Replace the state that the directory holds.")
	return cmd
}
