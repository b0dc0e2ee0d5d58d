package image

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	"golang.org/x/sys/unix"
)

// unpack writes a layer's files below dir, with whiteouts in overlay's form, and gives the size of the files. parents are the layers
// below, nearest first; directories that the layer only implies take their mode and owner from there.
func unpack(ctx context.Context, dir string, content io.Reader, parents []string, limits Limits) (int64, error) {
	guard := &guard{limits: limits}
	options := []archive.ApplyOpt{
		archive.WithFilter(guard.check),
		archive.WithConvertWhiteout(archive.OverlayConvertWhiteout),
		archive.WithParents(parents),
	}
	if os.Geteuid() != 0 {
		options = append(options, archive.WithNoSameOwner())
	}
	if _, err := archive.Apply(ctx, dir, content, options...); err != nil {
		return 0, fmt.Errorf("unpack: %w", err)
	}
	return guard.bytes, nil
}

// guard refuses layers that are made to do harm.
type guard struct {
	limits Limits
	bytes  int64
	files  int
}

func (g *guard) check(header *tar.Header) (bool, error) {
	g.files++
	g.bytes += header.Size
	if header.Size < 0 || g.bytes > g.limits.Bytes {
		return false, fmt.Errorf("the files of the layer take more than the %d bytes allowed (at %q)", g.limits.Bytes, header.Name)
	}
	if g.files > g.limits.Files {
		return false, fmt.Errorf("the layer has more than the %d files allowed", g.limits.Files)
	}
	// Symbolic links may point anywhere, they are resolved inside the container. Names of entries, and of what hard links mean, are ours to follow.
	names := []string{header.Name}
	if header.Typeflag == tar.TypeLink {
		names = append(names, header.Linkname)
	}
	for _, name := range names {
		for part := range strings.SplitSeq(name, "/") {
			if part == ".." {
				return false, fmt.Errorf("the name %q leads out of the image", name)
			}
		}
	}
	return true, nil
}

// syncTree makes everything on the file system of dir durable. For thousands of small files that is one call instead of one for each.
func syncTree(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
