package cli

import (
	"os"

	"github.com/spf13/cobra"
	componentcli "k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// kubectl runs the whole of kubectl as `bayplan kubectl`. It reads os.Args itself, in many places.
func kubectl(args []string) int {
	os.Args = args
	command := cmd.NewDefaultKubectlCommand()
	if err := componentcli.RunNoErrOutput(command); err != nil {
		util.CheckErr(err)
	}
	return 0
}

// newKubectlHelp is the entry of kubectl in bayplan's own help; Main runs it before.
func newKubectlHelp() *cobra.Command {
	return &cobra.Command{
		Use: "kubectl [command]", Short: "kubectl, the command line of Kubernetes", DisableFlagParsing: true,
		Run: func(_ *cobra.Command, args []string) { kubectl(append([]string{"kubectl"}, args...)) },
	}
}
