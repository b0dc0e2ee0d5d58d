package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/controller/all"
)

type serverOptions struct {
	clusterOptions
	controllers []string
	scheduler   bool
}

func newServer() *cobra.Command {
	o := &serverOptions{}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run the control plane alone: a Kubernetes API with its store",
		Long: "Run the control plane alone: a Kubernetes API with its store, and the few controllers without which an API cannot be used\n" +
			"(" + strings.Join(cluster.APIControllers(), ", ") + "). It needs no privileges.\n" +
			"With --etcd-endpoints and one --pki-dir several servers run side by side; one of them runs the controllers.",
		Example: "  # An API for tests of controllers\n  bayplan server --port 0 --kubeconfig ./kubeconfig\n\n" +
			"  # With all controllers and the scheduler\n  bayplan server --controllers '*' --scheduler",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			if err := o.complete(cmd); err != nil {
				return err
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.controllers, "controllers", cluster.APIControllers(), "Names of the controllers that run; '*' is all.")
	flags.BoolVar(&o.scheduler, "scheduler", false, "Run the scheduler too.")
	o.addFlags(flags)
	return cmd
}

// Validate refuses what makes no sense, and says to the cluster what runs.
func (o *serverOptions) Validate() error {
	o.config.NoScheduler = !o.scheduler
	o.config.Controllers = o.controllers
	if slices.Contains(o.controllers, "*") {
		o.config.Controllers = nil
	} else if len(o.controllers) == 0 {
		return fmt.Errorf("--controllers: name at least one; known are %s, and '*' for all", strings.Join(all.Names(), ", "))
	}
	for _, name := range o.config.Controllers {
		if !slices.Contains(all.Names(), name) {
			return fmt.Errorf("--controllers: there is no controller %q; known are %s, and '*' for all", name, strings.Join(all.Names(), ", "))
		}
	}
	return o.validate()
}
