package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/bayplan/bayplan/internal/atomicfile"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// add unpacks an image's layers and enters it into the index. Its config and layers are only as good as their digests: the config
// must have the digest that the manifest gives, and each layer the one that the config gives.
func (s *Store) add(ctx context.Context, source v1.Image, tags, digests []string) (Image, error) {
	image, diffs, err := describe(source)
	if err != nil {
		return Image{}, err
	}
	image.Tags, image.Digests, image.Added = tags, digests, s.now().UTC()
	ingestion, err := s.ingest(image.Layers)
	if err != nil {
		return Image{}, err
	}
	defer ingestion.end()
	layers, err := source.Layers()
	if err != nil {
		return Image{}, fmt.Errorf("layers of image %s: %w", image.ID, err)
	}
	if len(layers) != len(diffs) {
		return Image{}, fmt.Errorf("image %s: the manifest has %d layers and the config %d", image.ID, len(layers), len(diffs))
	}
	layers, stop := s.prefetch(ctx, layers, image.Layers)
	defer stop()
	for i, layer := range layers {
		if err := s.addLayer(ctx, layer, diffs[i], image.Layers[:i+1]); err != nil {
			return Image{}, fmt.Errorf("layer %d of image %s: %w", i, image.ID, err)
		}
		image.Size += s.layerSize(image.Layers[i])
	}
	if err := s.put(image); err != nil {
		return Image{}, err
	}
	return image, nil
}

// describe reads the config, checks its digest and computes the chain ids.
func describe(source v1.Image) (Image, []v1.Hash, error) {
	id, err := source.ConfigName()
	if err != nil {
		return Image{}, nil, fmt.Errorf("image config: %w", err)
	}
	raw, err := source.RawConfigFile()
	if err != nil {
		return Image{}, nil, fmt.Errorf("image config: %w", err)
	}
	if sum := sha256.Sum256(raw); id.Algorithm != "sha256" || hex.EncodeToString(sum[:]) != id.Hex {
		return Image{}, nil, fmt.Errorf("image config: the content does not have the digest %s", id)
	}
	config, err := source.ConfigFile()
	if err != nil {
		return Image{}, nil, fmt.Errorf("image config: %w", err)
	}
	image := Image{ID: id.String(), Config: config.Config, Platform: config.OS + "/" + config.Architecture}
	chain := ""
	for _, diff := range config.RootFS.DiffIDs {
		if chain, err = chainID(chain, diff); err != nil {
			return Image{}, nil, fmt.Errorf("image %s: %w", id, err)
		}
		image.Layers = append(image.Layers, chain)
	}
	return image, config.RootFS.DiffIDs, nil
}

// chainID names a layer together with all below it, by the rule of the OCI image specification.
func chainID(parent string, diff v1.Hash) (string, error) {
	if digits, err := hex.DecodeString(diff.Hex); err != nil || diff.Algorithm != "sha256" || len(digits) != sha256.Size {
		return "", fmt.Errorf("layer digest %q is not a SHA-256", diff)
	}
	if parent == "" {
		return diff.Hex, nil
	}
	sum := sha256.Sum256([]byte("sha256:" + parent + " " + diff.String()))
	return hex.EncodeToString(sum[:]), nil
}

// addLayer unpacks a layer unless it is there. chains are the chain ids up to and including its own.
func (s *Store) addLayer(ctx context.Context, layer v1.Layer, diff v1.Hash, chains []string) error {
	chain := chains[len(chains)-1]
	defer s.layers.Lock(chain)()
	if _, err := os.Stat(s.layerDir(chain)); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(filepath.Join(s.root, "tmp"), "layer-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := s.unpackInto(ctx, work, layer, diff, chains[:len(chains)-1]); err != nil {
		return err
	}
	if err := os.Chmod(work, 0o711); err != nil {
		return err
	}
	err = os.Rename(work, s.layerDir(chain))
	if errors.Is(err, os.ErrExist) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Join(s.root, "layers"))
}

// unpackInto fills the directory work with the layer's files and its size.
func (s *Store) unpackInto(ctx context.Context, work string, layer v1.Layer, diff v1.Hash, below []string) error {
	content, err := layer.Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	fs := filepath.Join(work, "fs")
	if err := os.Mkdir(fs, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(fs, 0o755); err != nil {
		return err
	}
	parents := make([]string, 0, len(below))
	for i := len(below) - 1; i >= 0; i-- {
		parents = append(parents, s.layerFS(below[i]))
	}
	sum := sha256.New()
	tee := io.TeeReader(content, sum)
	size, err := unpack(ctx, fs, tee, parents, s.limits)
	if err != nil {
		return err
	}
	// The archive ends before the stream does: the rest counts for the digest.
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != diff.Hex {
		return fmt.Errorf("the content has the digest sha256:%s, not %s as the image's config says", got, diff)
	}
	if err := os.WriteFile(filepath.Join(work, "size"), []byte(strconv.FormatInt(size, 10)), 0o600); err != nil {
		return err
	}
	return syncTree(work)
}

// layerSize is the size of a layer's files in bytes, as counted when it was unpacked.
func (s *Store) layerSize(chain string) int64 {
	text, err := os.ReadFile(filepath.Join(s.layerDir(chain), "size"))
	if err != nil {
		return 0
	}
	size, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return size
}
