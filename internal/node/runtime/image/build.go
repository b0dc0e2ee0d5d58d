package image

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Recipe says what an image of one layer is made of.
type Recipe struct {
	// Tag is the image's name, `hello:1`.
	Tag string
	// Files are what the image holds: the path inside it, and the file or directory on this machine that goes there.
	Files map[string]string
	// Config is how the image is run: Entrypoint, Cmd, Env, ExposedPorts, User, WorkingDir.
	Config v1.Config
}

// Build writes an image of one layer as an archive that Load, `docker load` and others take. The same files give the same bytes.
func Build(w io.Writer, recipe Recipe) error {
	full, err := normalize(recipe.Tag)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(full)
	if err != nil {
		return fmt.Errorf("image name %q: %w", recipe.Tag, err)
	}
	content, err := pack(recipe.Files)
	if err != nil {
		return fmt.Errorf("build image %s: %w", recipe.Tag, err)
	}
	built, err := assemble(content, recipe.Config)
	if err != nil {
		return fmt.Errorf("build image %s: %w", recipe.Tag, err)
	}
	return tarball.Write(tag, built, w)
}

func assemble(content []byte, config v1.Config) (v1.Image, error) {
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = platform().OS, platform().Architecture
	file.Config = config
	return mutate.ConfigFile(built, file)
}

// pack makes the layer: directories first, in order of their names.
func pack(files map[string]string) ([]byte, error) {
	entries := map[string]string{}
	for target, source := range files {
		err := filepath.WalkDir(source, func(file string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(source, file)
			if err != nil {
				return err
			}
			entries[strings.TrimPrefix(path.Join("/", target, filepath.ToSlash(relative)), "/")] = file
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	addParents(entries)
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for _, name := range sorted(entries) {
		if err := packEntry(writer, name, entries[name]); err != nil {
			return nil, err
		}
	}
	return content.Bytes(), writer.Close()
}

// addParents adds the directories that the names imply, with no file behind them.
func addParents(entries map[string]string) {
	for _, name := range sorted(entries) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, there := entries[dir]; !there {
				entries[dir] = ""
			}
		}
	}
}

func packEntry(writer *tar.Writer, name, file string) error {
	if name == "" {
		return nil
	}
	header := &tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0)}
	if file == "" {
		return writer.WriteHeader(header)
	}
	info, err := os.Lstat(file)
	if err != nil {
		return err
	}
	header.Mode = int64(info.Mode().Perm())
	switch {
	case info.IsDir():
		return writer.WriteHeader(header)
	case info.Mode().IsRegular():
		header.Name, header.Typeflag, header.Size = name, tar.TypeReg, info.Size()
		return packFile(writer, header, file)
	case info.Mode()&fs.ModeSymlink != 0:
		header.Name, header.Typeflag = name, tar.TypeSymlink
		if header.Linkname, err = os.Readlink(file); err != nil {
			return err
		}
		return writer.WriteHeader(header)
	}
	return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", file)
}

func packFile(writer *tar.Writer, header *tar.Header, file string) error {
	source, err := os.Open(file)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := writer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(writer, source)
	return err
}
