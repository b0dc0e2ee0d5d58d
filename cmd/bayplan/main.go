// Command bayplan is a Kubernetes-compatible cluster in one program.
package main

import (
	"os"

	"github.com/bayplan/bayplan/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args)) }
