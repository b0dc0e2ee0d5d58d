package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/kubeconfig"
)

// contextName is the name of context, cluster and user in the kubeconfig.
const contextName = "bayplan"

type upOptions struct {
	config     cluster.Config
	kubeconfig string
	file       kubeconfig.File
	// stopTimeout bounds how long the stop waits for pods.
	stopTimeout time.Duration
	out         io.Writer
}

func newUp() *cobra.Command {
	o := &upOptions{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster in this process and keep it in the foreground",
		Long: "Start a cluster in this process: API server with its store, controllers, scheduler, and nodes that run containers.\n" +
			"Ctrl-C stops it in order and keeps the data directory; the next start brings everything back.",
		Example: "  # A cluster with one node; then, in another terminal, kubectl get nodes\n  sudo bayplan up\n\n" +
			"  # The API alone, which needs no privileges\n  bayplan up --nodes 0",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.Complete(cmd.Flags().Changed("nodes")); err != nil {
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
	flags.StringVar(&o.config.DataDir, "data-dir", "", "Directory of the cluster's state. (default "+defaultDataDirText+")")
	flags.StringVar(&o.config.BindAddress, "bind-address", "127.0.0.1", "Address on which the API server listens.")
	flags.IntVar(&o.config.Port, "port", 6443, "Port on which the API server listens; 0 takes a free one.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "File into which access to the cluster is written. (default the user's own kubeconfig)")
	flags.DurationVar(&o.stopTimeout, "stop-timeout", 30*time.Second, "How long to wait for pods when stopping.")
	return cmd
}

// Complete fills in what was not said.
func (o *upOptions) Complete(nodesGiven bool) error {
	var err error
	if o.config.DataDir == "" {
		if o.config.DataDir, err = defaultDataDir(); err != nil {
			return err
		}
	}
	if !nodesGiven && cluster.CheckNodes() != nil {
		o.config.Nodes = 0
	}
	o.file = kubeconfig.At(o.kubeconfig)
	if o.kubeconfig == "" {
		o.file, err = kubeconfig.ForUser()
	}
	o.config.Report = func(m cluster.Mark) {
		fmt.Fprintf(o.out, "%-24s %6.0f ms\n", m.Part, float64(m.After)/float64(time.Millisecond))
	}
	return err
}

// Validate refuses what makes no sense.
func (o *upOptions) Validate() error {
	switch {
	case o.config.Nodes < 0:
		return fmt.Errorf("--nodes %d: must not be negative", o.config.Nodes)
	case o.config.Nodes > cluster.MaxNodes:
		return fmt.Errorf("--nodes %d: at most %d nodes run in one process", o.config.Nodes, cluster.MaxNodes)
	case net.ParseIP(o.config.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q: must be an IP address, for example 127.0.0.1", o.config.BindAddress)
	case o.config.Port < 0 || o.config.Port > 65535:
		return fmt.Errorf("--port %d: must be from 0 to 65535", o.config.Port)
	case o.config.Nodes > 0:
		return cluster.CheckNodes()
	}
	return nil
}

// Run starts the cluster and stops it when ctx is done or a part fails.
func (o *upOptions) Run(ctx context.Context) error {
	begun := time.Now()
	c, err := cluster.Start(ctx, o.config)
	if err != nil {
		return err
	}
	if err := o.file.Add(contextName, c.Admin()); err != nil {
		return errors.Join(err, o.stop(c))
	}
	fmt.Fprintf(o.out, "ready after %.2f s: %s, context %q in %s\n", time.Since(begun).Seconds(), c.Admin().Host, contextName, o.file.Path)
	if o.config.Nodes == 0 {
		fmt.Fprintln(o.out, "There are no nodes; pods stay Pending. (Nodes need Linux and root.)")
	}
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.out, "stopping")
	case err = <-c.Failed():
		err = fmt.Errorf("the API server ended: %w", err)
	}
	return errors.Join(err, o.stop(c))
}

func (o *upOptions) stop(c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.stopTimeout)
	defer cancel()
	return c.Stop(ctx)
}

const defaultDataDirText = "/var/lib/bayplan as root, otherwise bayplan in the user's data directory"

func defaultDataDir() (string, error) { return cluster.DefaultDataDir(os.Geteuid() == 0) }
