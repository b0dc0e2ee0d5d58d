package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/node/runtime/image"
	"github.com/bayplan/bayplan/internal/node/translate"
	"github.com/bayplan/bayplan/internal/node/volume"
)

// ErrFormerNodes refuses a start beside the pods of a killed process that this one may not end.
var ErrFormerNodes = errors.New("the pods of a cluster that was killed still run: end them by `sudo bayplan down`")

// endFormerCluster ends all that a killed process left of a cluster's nodes, and of its network.
func endFormerCluster(ctx context.Context, data *datadir.Dir) error {
	if _, err := os.Stat(filepath.Join(runRoot, clusterID(data.Path()))); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if CheckNodes() != nil {
		return fmt.Errorf("data directory %s: %w", data.Path(), ErrFormerNodes)
	}
	images, err := image.Open(ImagesDir(data.Path()))
	if err != nil {
		return err
	}
	fabric, err := openFabric(ctx, data)
	if err != nil {
		return err
	}
	former := &Cluster{data: data, fabric: fabric}
	if err := former.endFormerNodes(ctx, images); err != nil {
		return errors.Join(err, fabric.Close())
	}
	return fabric.Remove(ctx)
}

// endFormerNodes ends what a killed process left of nodes that this start no longer has: their pods, mounts, cgroups and place in the network. Their Node objects
// stay, as those of machines that broke down do: the node lifecycle controller moves their pods.
func (c *Cluster) endFormerNodes(ctx context.Context, images *image.Store) error {
	names, err := c.fabric.Nodes()
	if err != nil {
		return err
	}
	for _, name := range names {
		number, ok := nodeNumber(name)
		if ok && number <= c.config.Nodes {
			continue
		}
		klog.FromContext(ctx).Info("Ending a node that the cluster no longer has", "node", name)
		if ok {
			n := &runningNode{name: name, pods: nodePods(number)}
			if err := n.end(ctx, c, images); err != nil {
				return fmt.Errorf("ending the former node %s: %w", name, err)
			}
		}
		if err := c.fabric.RemoveNode(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// nodeNumber undoes nodeName.
func nodeNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, "node-")
	number, err := strconv.Atoi(digits)
	return number, ok && err == nil && number >= 1 && number <= MaxNodes && nodeName(number) == name
}

// end takes a node over from a killed process and ends all of it but its files.
func (n *runningNode) end(ctx context.Context, c *Cluster, images *image.Store) error {
	err := n.open(ctx, c, images)
	if err == nil {
		err = n.removeSandboxes(ctx)
	}
	if err == nil {
		err = unmountVolumes(c.data.Path("nodes", n.name))
	}
	return errors.Join(err, n.stop(ctx))
}

func (n *runningNode) removeSandboxes(ctx context.Context) error {
	ids, err := n.sandboxes(ctx)
	if err != nil {
		return err
	}
	errs := make([]error, len(ids))
	var removing sync.WaitGroup
	for i, id := range ids {
		removing.Go(func() {
			_, errs[i] = n.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
		})
	}
	removing.Wait()
	return errors.Join(errs...)
}

// unmountVolumes unmounts the volumes of the pods whose directories are below a node's. What is on disk stays, for the node may come back.
func unmountVolumes(nodeDir string) error {
	view := &translate.Node{RootDir: nodeDir}
	volumes := volume.New(nil, nil, func() *translate.Node { return view }, clock.RealClock{})
	entries, err := os.ReadDir(filepath.Join(nodeDir, "pods"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		errs = append(errs, volumes.Unmount(types.UID(e.Name())))
	}
	return errors.Join(errs...)
}
