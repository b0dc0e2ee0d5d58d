package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/bayplan/bayplan/internal/scheduler/core"
	"github.com/bayplan/bayplan/internal/scheduler/explain"
)

// explainOptions are those of bayplan explain.
type explainOptions struct {
	kubeconfig, kubecontext, namespace, node, output string
	top                                              int
	pod                                              string
}

func newExplain() *cobra.Command {
	o := &explainOptions{output: "table", top: 5}
	cmd := &cobra.Command{
		Use:   "explain pod/NAME",
		Short: "Tell why a pod is where it is, or why it is not scheduled",
		Long: "Tell why a pod is where it is, or why it is not scheduled: where in the queue it is and what it waits for, which plugins reject which\n" +
			"nodes, what is in the way on the nearest ones, and how the best nodes score. It is how the pod would be decided on now.\n\n" +
			"The answer comes from the scheduler, through the API server. It takes the right to get the path " + explain.Path + " (nonResourceURLs).",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args[0]); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig file; without it $KUBECONFIG or ~/.kube/config")
	flags.StringVar(&o.kubecontext, "context", "", "the context of the kubeconfig")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the pod's namespace; without it the context's")
	flags.StringVar(&o.node, "node", "", "tell about this node too")
	flags.StringVarP(&o.output, "output", "o", o.output, "table, json or yaml")
	flags.IntVar(&o.top, "top", o.top, "how many nodes to list")
	return cmd
}

func (o *explainOptions) complete(arg string) error {
	kind, name, both := strings.Cut(arg, "/")
	if !both {
		kind, name = "pod", arg
	}
	if kind != "pod" && kind != "pods" && kind != "po" || name == "" {
		return fmt.Errorf("%q: the scheduler explains pods only: bayplan explain pod/NAME", arg)
	}
	if o.output != "table" && o.output != "json" && o.output != "yaml" {
		return fmt.Errorf("--output is %q, must be table, json or yaml", o.output)
	}
	o.pod = name
	return nil
}

func (o *explainOptions) run(ctx context.Context, out io.Writer) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.kubecontext})
	if o.namespace == "" {
		namespace, _, err := config.Namespace()
		if err != nil {
			return err
		}
		o.namespace = namespace
	}
	rest, err := config.ClientConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return err
	}
	data, err := o.ask(ctx, client)
	if err != nil {
		return err
	}
	return o.print(out, data)
}

// ask gets the explanation in JSON.
func (o *explainOptions) ask(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	number := fmt.Sprint(o.top)
	result := client.CoreV1().RESTClient().Get().AbsPath(explain.Path).Param("namespace", o.namespace).Param("pod", o.pod).
		Param("node", o.node).Param("top", number).Param("misses", number).Do(ctx)
	err := result.Error() // which reads the server's reason; that of Raw does not
	if apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "pods") {
		return nil, fmt.Errorf("no scheduler of Bayplan answers at %s of this API server: it runs elsewhere, or is another one", explain.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler about pod %s/%s: %w", o.namespace, o.pod, err)
	}
	return result.Raw()
}

func (o *explainOptions) print(out io.Writer, data []byte) error {
	x := &core.Explanation{}
	if err := json.Unmarshal(data, x); err != nil {
		return fmt.Errorf("the answer about pod %s/%s: %w", o.namespace, o.pod, err)
	}
	if o.output == "table" {
		return explain.Text(out, o.namespace, o.pod, x, time.Now())
	}
	text, err := yaml.Marshal(x)
	if o.output == "json" {
		text, err = json.MarshalIndent(x, "", "  ")
		text = append(text, '\n')
	}
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}
