// Command bayplan-pod is the process that holds one pod: its namespaces, its containers, their output and their exit codes.
//
// The agent starts one for each pod, inside the pod's new namespaces, and talks to it over a unix socket (package protocol of the
// product). It is the parent of the pod's containers, and it stays when the agent goes: a new agent connects to the same socket.
// It needs no configuration file and keeps nothing on disk but the containers' records; everything else is told with each call.
//
// The binary has two more faces, both internal: `init` is the first stage of a container (libcontainer runs it before the container's own
// command), and `pause` is process 1 of a PID namespace that the containers of a pod share.
package main

import (
	"fmt"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/bayplan/bayplan/runtime-helper/internal/pod"
	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // joins the container's namespaces in C, before Go starts its threads
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" {
		libcontainer.Init() // becomes the container's command; never returns
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == pod.PauseCommand {
		pod.Pause()
	}
	if len(os.Args) != 2 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, "bayplan-pod holds one pod for the bayplan agent, which starts it as `bayplan-pod serve`; it is not for use by hand")
		os.Exit(2)
	}
	if err := serve(); err != nil {
		_ = protocol.Write(os.Stdout, &protocol.Reply{Error: &protocol.Error{Message: err.Error()}})
		fmt.Fprintln(os.Stderr, "bayplan-pod:", err)
		os.Exit(1)
	}
}

func serve() error {
	var config protocol.PodConfig
	if err := protocol.Read(os.Stdin, &config); err != nil {
		return fmt.Errorf("read the pod's configuration from standard input: %w", err)
	}
	p, err := pod.New(&config)
	if err != nil {
		return fmt.Errorf("pod sandbox %s: %w", config.SandboxID, err)
	}
	if err := protocol.Write(os.Stdout, &protocol.Reply{Hello: p.Hello()}); err != nil {
		return fmt.Errorf("tell the agent that the pod is ready: %w", err)
	}
	p.ReleaseStdio()
	return p.Serve()
}
