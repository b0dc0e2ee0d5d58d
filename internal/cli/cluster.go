package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/kubeconfig"
	"github.com/bayplan/bayplan/internal/residency"
)

// settleTime is how long after the start what only the start needed is given back.
const settleTime = 15 * time.Second

// contextName is the name of context, cluster and user in the kubeconfig.
const contextName = "bayplan"

// clusterOptions are what up and server have in common.
type clusterOptions struct {
	config     cluster.Config
	kubeconfig string
	file       kubeconfig.File
	// stopTimeout bounds how long the stop waits for pods.
	stopTimeout time.Duration
	out         io.Writer
}

func (o *clusterOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.config.DataDir, "data-dir", "", "Directory of the cluster's state. (default "+defaultDataDirText+")")
	flags.StringVar(&o.config.BindAddress, "bind-address", "127.0.0.1", "Address on which the API server listens.")
	flags.IntVar(&o.config.Port, "port", 6443, "Port on which the API server listens; 0 takes a free one.")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "File into which access to the cluster is written. (default the user's own kubeconfig)")
	flags.DurationVar(&o.stopTimeout, "stop-timeout", 30*time.Second, "How long to wait for pods when stopping.")
	flags.StringVar(&o.config.PKIDir, "pki-dir", "", "Directory of keys and certificates; servers that share an etcd need the same. (default pki in the data directory)")
	flags.StringSliceVar(&o.config.Etcd.Endpoints, "etcd-endpoints", nil, "URLs of an etcd cluster that keeps the state in place of the embedded etcd.")
	flags.StringVar(&o.config.Etcd.CAFile, "etcd-cafile", "", "Certificates that verify the etcd servers.")
	flags.StringVar(&o.config.Etcd.CertFile, "etcd-certfile", "", "Client certificate for etcd.")
	flags.StringVar(&o.config.Etcd.KeyFile, "etcd-keyfile", "", "Key of the client certificate for etcd.")
	flags.StringSliceVar(&o.config.Admission.Enable, "enable-admission-plugins", nil, "Admission plugins to use beside those that are on by default.")
	flags.StringSliceVar(&o.config.Admission.Disable, "disable-admission-plugins", nil, "Admission plugins not to use although they are on by default.")
	flags.DurationVar(&o.config.CompactionInterval, "compaction-interval", cluster.DefaultCompactionInterval,
		"How long old versions of objects are kept for watches and lists that go on from them.")
}

// complete fills in what was not said.
func (o *clusterOptions) complete(cmd *cobra.Command) error {
	var err error
	if o.config.DataDir == "" {
		if o.config.DataDir, err = defaultDataDir(); err != nil {
			return err
		}
	}
	o.config.Version, o.config.Flags = Version, flagValues(cmd.Flags())
	o.file = kubeconfig.At(o.kubeconfig)
	if o.kubeconfig == "" {
		o.file, err = kubeconfig.ForUser()
	}
	o.config.Report = func(m cluster.Mark) {
		fmt.Fprintf(o.out, "%-24s %6.0f ms\n", m.Part, float64(m.After)/float64(time.Millisecond))
	}
	return err
}

func (o *clusterOptions) validate() error {
	switch {
	case net.ParseIP(o.config.BindAddress) == nil:
		return fmt.Errorf("--bind-address %q: must be an IP address, for example 127.0.0.1", o.config.BindAddress)
	case o.config.Port < 0 || o.config.Port > 65535:
		return fmt.Errorf("--port %d: must be from 0 to 65535", o.config.Port)
	case o.config.CompactionInterval < 0:
		return fmt.Errorf("--compaction-interval %s: must not be negative", o.config.CompactionInterval)
	}
	return o.config.Etcd.Validate()
}

// run starts the cluster and stops it when ctx is done, the administrator asks for it or a part fails.
func (o *clusterOptions) run(ctx context.Context) error {
	if err := o.file.Check(); err != nil {
		return err
	}
	begun := time.Now()
	c, err := cluster.Start(ctx, o.config)
	if err != nil {
		return err
	}
	if err := o.file.Add(contextName, c.Admin()); err != nil {
		return errors.Join(err, o.stop(c))
	}
	fmt.Fprintf(o.out, "%s after %.2f s: %s, context %q in %s\n", readyWord, time.Since(begun).Seconds(), c.Admin().Host, contextName, o.file.Path)
	if has, err := c.HasNodes(ctx); err == nil && !has {
		fmt.Fprintln(o.out, "There are no nodes; pods stay Pending. (Nodes need Linux and root; simulated ones do not: --sim-nodes.)")
	}
	settled := time.AfterFunc(settleTime, func() {
		if err := residency.DropProgram(); err != nil {
			klog.FromContext(ctx).V(2).Info("Pages that only the start needed stay mapped", "err", err)
		}
	})
	defer settled.Stop()
	select {
	case <-ctx.Done():
		fmt.Fprintln(o.out, "stopping")
	case <-c.StopAsked():
		fmt.Fprintln(o.out, "stopping, as `bayplan down` asks")
	case err = <-c.Failed():
		err = fmt.Errorf("the API server ended: %w", err)
	}
	return errors.Join(err, o.stop(c))
}

func (o *clusterOptions) stop(c *cluster.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.stopTimeout)
	defer cancel()
	return c.Stop(ctx)
}

const defaultDataDirText = "/var/lib/bayplan as root, otherwise bayplan in the user's data directory"

func defaultDataDir() (string, error) { return cluster.DefaultDataDir(os.Geteuid() == 0) }

// dataDirFlag is for commands that work on a data directory.
func dataDirFlag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "data-dir", "", "Directory of the cluster's state. (default "+defaultDataDirText+")")
}

func orDefaultDataDir(dir string) (string, error) {
	if strings.TrimSpace(dir) != "" {
		return dir, nil
	}
	return defaultDataDir()
}
