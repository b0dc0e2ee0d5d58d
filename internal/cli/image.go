package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/bayplan/bayplan/internal/cluster"
	"github.com/bayplan/bayplan/internal/node/runtime/image"
)

// imageOptions are shared by the commands on images. They work on the machine's image store directly, whether a cluster runs or not.
type imageOptions struct {
	dataDir string
	out     io.Writer
}

func newImage() *cobra.Command {
	o := &imageOptions{}
	cmd := &cobra.Command{Use: "image", Short: "Load, list and remove the container images of this machine"}
	cmd.PersistentFlags().StringVar(&o.dataDir, "data-dir", "", "Directory of the cluster's state. (default "+defaultDataDirText+")")
	cmd.AddCommand(
		o.command("load FILE...", "Load images from docker or OCI archives", cobra.MinimumNArgs(1), o.load),
		o.command("pull IMAGE...", "Pull images from their registries", cobra.MinimumNArgs(1), o.pull),
		o.command("list", "List the images", cobra.NoArgs, o.list),
		o.command("remove IMAGE...", "Remove images", cobra.MinimumNArgs(1), o.remove),
	)
	return cmd
}

func (o *imageOptions) command(use, short string, args cobra.PositionalArgs, run func(context.Context, *image.Store, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		o.out = cmd.OutOrStdout()
		store, err := o.open()
		if err != nil {
			return err
		}
		return run(cmd.Context(), store, args)
	}}
}

func (o *imageOptions) open() (*image.Store, error) {
	if o.dataDir == "" {
		dir, err := defaultDataDir()
		if err != nil {
			return nil, err
		}
		o.dataDir = dir
	}
	return image.Open(cluster.ImagesDir(o.dataDir))
}

func (o *imageOptions) load(ctx context.Context, store *image.Store, files []string) error {
	for _, file := range files {
		names, err := store.LoadFile(ctx, file)
		if err != nil {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(o.out, "loaded %s\n", name)
		}
	}
	return nil
}

func (o *imageOptions) pull(ctx context.Context, store *image.Store, refs []string) error {
	for _, ref := range refs {
		pulled, err := store.Pull(ctx, ref, image.PullOptions{})
		if err != nil {
			return err
		}
		fmt.Fprintf(o.out, "pulled %s (%s)\n", ref, pulled.ID)
	}
	return nil
}

func (o *imageOptions) list(_ context.Context, store *image.Store, _ []string) error {
	images, err := store.List()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "IMAGE\tID\tSIZE")
	for _, i := range images {
		for _, name := range i.Tags {
			fmt.Fprintf(w, "%s\t%.19s\t%s\n", name, i.ID, humanize.Bytes(uint64(i.Size)))
		}
	}
	return w.Flush()
}

func (o *imageOptions) remove(_ context.Context, store *image.Store, refs []string) error {
	for _, ref := range refs {
		if err := store.Remove(ref); err != nil {
			return err
		}
		fmt.Fprintf(o.out, "removed %s\n", ref)
	}
	return nil
}
