package image

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// LoadFile loads an archive from a file; see Load.
func (s *Store) LoadFile(ctx context.Context, path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := s.Load(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return names, nil
}

// Load takes the images of an archive, as `docker save` or an OCI layout writes it, gzipped or not, and gives their names. An
// image without a name is given by its id.
func (s *Store) Load(ctx context.Context, archive io.Reader) ([]string, error) {
	guard, err := s.ingest(nil) // keeps our temporary files
	if err != nil {
		return nil, err
	}
	defer guard.end()
	dir, err := os.MkdirTemp(filepath.Join(s.root, "tmp"), "load-")
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "archive.tar")
	if err := s.spool(ctx, archive, path); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	members, err := memberNames(path)
	if err != nil {
		return nil, fmt.Errorf("the archive is not a tar file: %w", err)
	}
	switch {
	case members["manifest.json"]:
		return s.loadDocker(ctx, path)
	case members["index.json"]:
		return s.loadOCI(ctx, path, filepath.Join(dir, "layout"))
	}
	return nil, errors.New("the archive has neither a manifest.json (docker) nor an index.json (OCI): it holds no images")
}

// spool copies the archive to a file, because its members are read in an order that is not the archive's.
func (s *Store) spool(ctx context.Context, archive io.Reader, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewReaderSize(archive, 64<<10)
	var plain io.Reader = buffered
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		if plain, err = gzip.NewReader(buffered); err != nil {
			return err
		}
	}
	size, err := io.Copy(file, io.LimitReader(contextReader{ctx, plain}, s.limits.Bytes+1))
	if err != nil {
		return err
	}
	if size > s.limits.Bytes {
		return fmt.Errorf("it is larger than the %d bytes allowed", s.limits.Bytes)
	}
	return file.Close()
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func memberNames(path string) (map[string]bool, error) {
	names := map[string]bool{}
	err := eachMember(path, func(header *tar.Header, _ io.Reader) error {
		names[filepath.Clean(header.Name)] = true
		return nil
	})
	return names, err
}

func eachMember(path string, visit func(*tar.Header, io.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(header, reader); err != nil {
			return err
		}
	}
}

func (s *Store) loadDocker(ctx context.Context, path string) ([]string, error) {
	open := func() (io.ReadCloser, error) { return os.Open(path) }
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, fmt.Errorf("manifest.json of the archive: %w", err)
	}
	var loaded []string
	for i, entry := range manifest {
		var tag *name.Tag
		if len(manifest) > 1 {
			if len(entry.RepoTags) == 0 {
				return loaded, fmt.Errorf("image %d of the archive has no tag, so that it cannot be told from the others: save it alone", i)
			}
			first, err := name.NewTag(entry.RepoTags[0])
			if err != nil {
				return loaded, fmt.Errorf("tag of image %d of the archive: %w", i, err)
			}
			tag = &first
		}
		source, err := tarball.Image(open, tag)
		if err != nil {
			return loaded, fmt.Errorf("image %d of the archive: %w", i, err)
		}
		names, err := s.addNamed(ctx, source, entry.RepoTags)
		if err != nil {
			return loaded, err
		}
		loaded = append(loaded, names...)
	}
	return loaded, nil
}

// addNamed adds an image under the names that an archive gives it.
func (s *Store) addNamed(ctx context.Context, source v1.Image, tags []string) ([]string, error) {
	var names []string
	for _, tag := range tags {
		full, err := normalize(tag)
		if err != nil {
			return nil, err
		}
		names = append(names, full)
	}
	image, err := s.add(ctx, source, names, nil)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		names = []string{image.ID}
	}
	return names, nil
}

// refNames are the annotations by which tools name an image of an OCI layout, the better first.
var refNames = []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"}

func (s *Store) loadOCI(ctx context.Context, path, dir string) ([]string, error) {
	if err := s.extractLayout(path, dir); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		return nil, err
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("index.json of the archive: %w", err)
	}
	images, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("OCI layout of the archive: %w", err)
	}
	var loaded []string
	for i := range index.Manifests {
		names, err := s.addDescribed(ctx, images, &index.Manifests[i])
		if err != nil {
			return loaded, fmt.Errorf("image %s of the archive: %w", index.Manifests[i].Digest, err)
		}
		loaded = append(loaded, names...)
	}
	return loaded, nil
}

// addDescribed adds what an entry of an index means: an image, or of another index the one for this machine.
func (s *Store) addDescribed(ctx context.Context, images v1.ImageIndex, entry *v1.Descriptor) ([]string, error) {
	source, err := choose(images, entry)
	if err != nil {
		return nil, err
	}
	for _, key := range refNames {
		ref := entry.Annotations[key]
		if ref == "" {
			continue
		}
		return s.addNamed(ctx, source, []string{ref})
	}
	return s.addNamed(ctx, source, nil)
}

func choose(images v1.ImageIndex, entry *v1.Descriptor) (v1.Image, error) {
	if !entry.MediaType.IsIndex() {
		return images.Image(entry.Digest)
	}
	inner, err := images.ImageIndex(entry.Digest)
	if err != nil {
		return nil, err
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		return nil, err
	}
	for i := range manifest.Manifests {
		if p := manifest.Manifests[i].Platform; p != nil && p.Satisfies(platform()) {
			return choose(inner, &manifest.Manifests[i])
		}
	}
	return nil, fmt.Errorf("it has no image for %s", platform())
}

// extractLayout writes the regular files of an archive below dir. Names that lead elsewhere are refused by os.Root.
func (s *Store) extractLayout(path, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return eachMember(path, func(header *tar.Header, content io.Reader) error {
		if header.Typeflag != tar.TypeReg {
			return nil
		}
		if err := root.MkdirAll(filepath.Dir(filepath.Clean(header.Name)), 0o700); err != nil {
			return fmt.Errorf("archive member %q: %w", header.Name, err)
		}
		file, err := root.Create(header.Name)
		if err != nil {
			return fmt.Errorf("archive member %q: %w", header.Name, err)
		}
		defer file.Close()
		if _, err := io.Copy(file, content); err != nil {
			return fmt.Errorf("archive member %q: %w", header.Name, err)
		}
		return file.Close()
	})
}
