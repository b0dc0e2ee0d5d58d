package cli

import (
	"github.com/spf13/cobra"
	componentcli "k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl runs the whole of kubectl as `bayplan kubectl`.
func kubectl(args []string) int {
	command := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{Arguments: args})
	command.SetArgs(args[1:])
	if err := componentcli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
	return 0
}

// newKubectlHelp is the entry of kubectl in bayplan's own help; Main runs it before.
func newKubectlHelp() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl [command]", Short: "kubectl, the command line of Kubernetes", DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			kubectl(append([]string{"kubectl"}, args...))
			return nil
		},
	}
}
