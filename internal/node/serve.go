package node

import (
	"context"

	"github.com/bayplan/bayplan/internal/node/api"
)

// serve serves the node API until ctx ends.
func (n *Node) serve(ctx context.Context) error {
	server := &api.Server{
		Runtime: n.cfg.Runtime, Pods: n.pods.list, RootDir: n.cfg.RootDir, Node: n.cfg.Name, Clock: n.cfg.Clock,
		Certificate: n.cfg.Certificate, GetCertificate: n.cfg.GetCertificate, ClientCAs: n.cfg.ClientCAs, ClientNames: n.cfg.ClientNames,
	}
	return server.Serve(ctx, n.cfg.Listener)
}
