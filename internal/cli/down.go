package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/kubeconfig"
)

type downOptions struct {
	dataDir    string
	kubeconfig string
	remove     bool
	timeout    time.Duration
	out        io.Writer
}

func newDown() *cobra.Command {
	o := &downOptions{}
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster that runs on a data directory",
		Long: "Stop the cluster that runs on a data directory, in order, and end what a killed one left: pods, mounts, network namespaces, cgroups.\n" +
			"The data stays, unless --delete is given. That nothing runs is no error.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			return o.Run(cmd.Context())
		},
	}
	dataDirFlag(cmd.Flags(), &o.dataDir)
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "File out of which --delete takes the access to the cluster. (default the user's own kubeconfig)")
	cmd.Flags().BoolVar(&o.remove, "delete", false, "Remove the data directory too: state, keys and images.")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "How long to wait for the cluster to stop.")
	return cmd
}

// Run stops the cluster.
func (o *downOptions) Run(ctx context.Context) error {
	dir, err := orDefaultDataDir(o.dataDir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	authority, _ := os.ReadFile(filepath.Join(dir, "pki", "ca.crt")) // without it no kubeconfig can be of this cluster
	stopped, err := cluster.Down(ctx, dir, o.remove)
	if err != nil {
		return err
	}
	if stopped == nil {
		fmt.Fprintf(o.out, "no cluster runs on %s\n", dir)
	} else {
		fmt.Fprintf(o.out, "stopped process %d on %s\n", stopped.PID, dir)
	}
	if !o.remove {
		return nil
	}
	fmt.Fprintf(o.out, "removed %s\n", dir)
	return o.forget(authority)
}

// forget takes the cluster out of the kubeconfig.
func (o *downOptions) forget(authority []byte) error {
	file := kubeconfig.At(o.kubeconfig)
	if o.kubeconfig == "" {
		var err error
		if file, err = kubeconfig.ForUser(); err != nil {
			return err
		}
	}
	return file.RemoveCluster(contextName, authority)
}
