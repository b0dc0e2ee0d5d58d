package main

import (
	"context"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// bayplan is `bayplan server`: API, store and the few controllers without which an API cannot be used.
type bayplan struct{ program string }

func (bayplan) name() string { return "bayplan server" }

func (b bayplan) start(_ context.Context, dir string) (*plane, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig-"+strconv.Itoa(port))
	p := &plane{config: func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) }}
	return p, p.launch(dir, b.program, "server", "--data-dir", filepath.Join(dir, "data"), "--port", strconv.Itoa(port), "--kubeconfig", kubeconfig)
}
