package network

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/netns"
)

// RemoveNode takes the node's namespace away, with the links of its pods, and forgets its address and those of its pods. The node need not have
// been added by this process; one that is not there is no error.
func (f *Fabric) RemoveNode(ctx context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hub == nil {
		return fmt.Errorf("pod network: removing node %s: the network is closed: %w", name, os.ErrClosed)
	}
	var errs []error
	if n := f.nodes[name]; n != nil {
		errs = append(errs, n.close())
		delete(f.nodes, name)
	}
	errs = append(errs, f.hub.unlink(f.config.interfaceName("nod", name)), demolish(nodePath(f.config.RunDir, name)))
	if err := os.Remove(podsStatePath(f.config.StateDir, name)); !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pod network: removing node %s: %w", name, err)
	}
	klog.FromContext(ctx).V(2).Info("Node is out of the pod network", "node", name)
	return f.pool.Free(name)
}

// Remove takes all namespaces away and closes the fabric. What is in the state directory stays, so that nodes get the same addresses again.
func (f *Fabric) Remove(ctx context.Context) error {
	return errors.Join(f.Close(), Remove(ctx, f.config.RunDir))
}

// Remove takes away all namespaces that a fabric has pinned under runDir, also those that a crashed process left, and the folders that become
// empty. That nothing is there is no error. The fabric must not be open.
func Remove(ctx context.Context, runDir string) error {
	entries, err := os.ReadDir(nodeDir(runDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("pod network: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		errs = append(errs, demolish(filepath.Join(nodeDir(runDir), entry.Name())))
	}
	errs = append(errs, demolish(controlPlanePath(runDir)))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("pod network: removing %s: %w", namespaceDir(runDir), err)
	}
	for _, dir := range []string{nodeDir(runDir), namespaceDir(runDir)} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("pod network: %w", err)
		}
	}
	_ = os.Remove(runDir) // others may have files there
	klog.FromContext(ctx).V(2).Info("Pod network is removed", "runDir", runDir)
	return nil
}

// demolish removes a namespace and its links. The kernel would remove the links of a namespace with it, but only some time later, and
// not while anybody has a socket or process inside.
func demolish(path string) error {
	ns, err := netns.Open(path)
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrNotExist) {
		return netns.Delete(path)
	}
	if err != nil {
		return err
	}
	in, err := enter(ns)
	if err != nil {
		return err
	}
	defer in.close()
	links, err := in.links()
	if err != nil {
		return err
	}
	for _, link := range links {
		if kind := link.Type(); kind == "veth" || kind == "ifb" {
			if err := in.unlink(link.Attrs().Name); err != nil {
				return err
			}
		}
	}
	return netns.Delete(path)
}
