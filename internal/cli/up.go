package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
)

type upOptions struct {
	clusterOptions
	simulatedOptions
	detach bool
}

func newUp() *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster in this process and keep it in the foreground",
		Long: "Start a cluster in this process: API server with its store, controllers, scheduler, and nodes that run containers.\n" +
			"Ctrl-C, or `bayplan down`, stops it in order and keeps the data directory; the next start brings everything back.",
		Example: "  # A cluster with one node; then, in another terminal, kubectl get nodes\n  sudo bayplan up\n\n" +
			"  # The API alone, which needs no privileges, in the background\n  bayplan up --nodes 0 --detach\n\n" +
			"  # A thousand simulated nodes, which need none either\n  bayplan up --nodes 0 --sim-nodes 1000",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.Complete(cmd); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.config.Nodes, "nodes", 1, "How many nodes that run containers (needs Linux and root). Without root the default is 0.")
	flags.BoolVar(&o.detach, "detach", false, "Return when the cluster is ready and let it run in the background, until bayplan down.")
	o.clusterOptions.addFlags(flags)
	o.simulatedOptions.addFlags(flags)
	return cmd
}

// Complete fills in what was not said.
func (o *upOptions) Complete(cmd *cobra.Command) error {
	if !cmd.Flags().Changed("nodes") && cluster.CheckNodes() != nil {
		o.config.Nodes = 0
	}
	if err := o.simulatedOptions.complete(&o.config); err != nil {
		return err
	}
	return o.clusterOptions.complete(cmd)
}

// Validate refuses what makes no sense.
func (o *upOptions) Validate() error {
	switch {
	case o.config.Nodes < 0:
		return fmt.Errorf("--nodes %d: must not be negative", o.config.Nodes)
	case o.config.Nodes > cluster.MaxNodes:
		return fmt.Errorf("--nodes %d: at most %d nodes run in one process", o.config.Nodes, cluster.MaxNodes)
	}
	if err := o.simulatedOptions.validate(); err != nil {
		return err
	}
	if err := o.clusterOptions.validate(); err != nil || o.config.Nodes == 0 {
		return err
	}
	return cluster.CheckNodes()
}

// Run starts the cluster, here or in a process of its own.
func (o *upOptions) Run(ctx context.Context) error {
	if o.detach {
		return runDetached(ctx, &o.clusterOptions)
	}
	return o.run(ctx)
}
