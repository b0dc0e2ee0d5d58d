package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/manifest"
	"github.com/bayplan/bayplan/internal/fleet/provision"
)

// nodeOptions are shared by the commands on simulated nodes. They are a client's: the cluster may run anywhere.
type nodeOptions struct {
	kubeconfig, context string
	group               string
	count               int
	template            string
	timeout             time.Duration
	out                 io.Writer
}

func newNode() *cobra.Command {
	o := &nodeOptions{}
	cmd := &cobra.Command{
		Use: "node", Short: "Add simulated nodes to a running cluster, and delete them",
		Long: "Add simulated nodes to a running cluster, and delete them. They stay over a restart of the cluster, and need no privileges; `bayplan up` runs them.",
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "File with access to the cluster. (default the user's own kubeconfig)")
	flags.StringVar(&o.context, "context", "", "Context of the kubeconfig. (default the current one)")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Minute, "How long to wait.")
	cmd.AddCommand(newNodeAdd(o), newNodeDelete(o))
	return cmd
}

func newNodeAdd(o *nodeOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use: "add", Short: "Add simulated nodes, and wait until they are Ready",
		Example: "  # Ten nodes of the usual size\n  bayplan node add --count 10\n\n  # 500 like those in a file, which has a Node or a NodeGroup\n" +
			"  bayplan node add --count 500 --group gpu --template gpu-node.yaml",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.out = cmd.OutOrStdout()
			group, err := o.readGroup(cmd.Flags().Changed("count"))
			if err != nil {
				return err
			}
			return o.add(cmd.Context(), group)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.count, "count", 1, "How many nodes. (default the template's)")
	flags.StringVar(&o.group, "group", "", "Group of the nodes, by which they are named and deleted. (default the template's, or "+simulatedGroup+")")
	flags.StringVar(&o.template, "template", "", "File with a Node or a NodeGroup, which the nodes are made after.")
	return cmd
}

func newNodeDelete(o *nodeOptions) *cobra.Command {
	count := 0
	cmd := &cobra.Command{
		Use: "delete [NODE...]", Short: "Delete simulated nodes",
		Example: "  bayplan node delete sim-3 sim-4\n\n  # The youngest ten of a group\n  bayplan node delete --group gpu --count 10",
		RunE: func(cmd *cobra.Command, names []string) error {
			o.out = cmd.OutOrStdout()
			if cmd.Flags().Changed("count") && count < 1 {
				return fmt.Errorf("--count %d: must be at least 1; leave it out to delete all nodes of the group", count)
			}
			choice := provision.Choice{Names: names, Group: o.group, Count: count}
			if err := validateChoice(choice); err != nil {
				return err
			}
			return o.delete(cmd.Context(), choice)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.group, "group", "", "Delete nodes of this group.")
	flags.IntVar(&count, "count", 0, "How many nodes of the group, the youngest first. (default all)")
	return cmd
}

func validateChoice(c provision.Choice) error {
	switch {
	case len(c.Names) == 0 && c.Group == "":
		return errors.New("say which nodes: by their names, or by --group")
	case len(c.Names) > 0 && c.Group != "":
		return errors.New("say which nodes either by their names or by --group")
	case c.Count < 0 || c.Count > 0 && c.Group == "":
		return fmt.Errorf("--count %d: must be above 0, and goes with --group", c.Count)
	}
	return nil
}

// readGroup is the group that the flags describe.
func (o *nodeOptions) readGroup(counted bool) (*v1alpha1.NodeGroup, error) {
	if o.count < 1 || o.count > manifest.MaxNodes {
		return nil, fmt.Errorf("--count %d: must be from 1 to %d", o.count, manifest.MaxNodes)
	}
	if o.template == "" {
		group := &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: o.group}, Spec: v1alpha1.NodeGroupSpec{Count: int32(o.count)}}
		if group.Name == "" {
			group.Name = simulatedGroup
		}
		return group, nil
	}
	data, err := os.ReadFile(o.template)
	if err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	group, err := manifest.ReadGroup(data, o.group, simulatedGroup)
	if err != nil {
		return nil, fmt.Errorf("--template: %s: %w", o.template, err)
	}
	group.ObjectMeta = metav1.ObjectMeta{Name: group.Name}
	if counted {
		group.Spec.Count = int32(o.count)
	}
	return group, nil
}

func (o *nodeOptions) add(ctx context.Context, group *v1alpha1.NodeGroup) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	begun := time.Now()
	names, err := provision.Add(ctx, client, group)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%d simulated nodes are Ready after %.2f s: %s\n", len(names), time.Since(begun).Seconds(), span(names))
	return nil
}

func (o *nodeOptions) delete(ctx context.Context, choice provision.Choice) error {
	client, err := o.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	names, err := provision.Delete(ctx, client, choice)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%d simulated nodes are deleted: %s\n", len(names), span(names))
	return nil
}

// span shows the first and the last of many names.
func span(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return names[0] + " to " + names[len(names)-1]
}

func (o *nodeOptions) client() (kubernetes.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no access to a cluster: %w; name a file by --kubeconfig", err)
	}
	config.QPS = -1 // the number of writers bounds it
	return kubernetes.NewForConfig(config)
}
