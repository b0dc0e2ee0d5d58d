package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// parallelFetches is how many layers of one image are fetched at once. Registries serve one stream slower than the line is.
const parallelFetches = 4

// prefetch begins to fetch the layers that are not there yet, several at once, into temporary files, while they are unpacked one after the other, each on
// those below it. What it gives are the same layers, which wait for their files. stop ends what is still going on and removes the files.
func (s *Store) prefetch(ctx context.Context, layers []v1.Layer, chains []string) ([]v1.Layer, func()) {
	var missing []int
	for i := range layers {
		if _, err := os.Stat(s.layerDir(chains[i])); err != nil {
			missing = append(missing, i)
		}
	}
	if len(missing) < 2 {
		return layers, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	slots := make(chan struct{}, parallelFetches)
	var working sync.WaitGroup
	result := append([]v1.Layer(nil), layers...)
	var fetches []*fetch
	for _, i := range missing {
		f := &fetch{layer: layers[i], done: make(chan struct{})}
		fetches = append(fetches, f)
		wrapped, err := partial.CompressedToLayer(f)
		if err != nil {
			continue // fetched when it is its turn
		}
		result[i] = wrapped
		working.Go(func() { f.run(ctx, slots, filepath.Join(s.root, "tmp")) })
	}
	return result, func() {
		cancel()
		working.Wait()
		for _, f := range fetches {
			f.remove()
		}
	}
}

// fetch is a layer on its way. Its content is checked against its digest by the source, and again, unpacked, by who uses it.
type fetch struct {
	layer v1.Layer
	done  chan struct{} // closed when path or err is set
	path  string
	err   error
}

func (f *fetch) run(ctx context.Context, slots chan struct{}, dir string) {
	defer close(f.done)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		f.err = ctx.Err()
		return
	}
	f.path, f.err = f.save(ctx, dir)
}

func (f *fetch) save(ctx context.Context, dir string) (path string, err error) {
	content, err := f.layer.Compressed()
	if err != nil {
		return "", err
	}
	defer content.Close()
	file, err := os.CreateTemp(dir, "fetch-")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, contextReader{ctx, content})
	return file.Name(), errors.Join(err, file.Close())
}

func (f *fetch) remove() {
	if f.path != "" {
		_ = os.Remove(f.path)
	}
}

// Digest, Size and MediaType are the layer's; Compressed waits until it is here.
func (f *fetch) Digest() (v1.Hash, error)            { return f.layer.Digest() }
func (f *fetch) Size() (int64, error)                { return f.layer.Size() }
func (f *fetch) MediaType() (types.MediaType, error) { return f.layer.MediaType() }

func (f *fetch) Compressed() (io.ReadCloser, error) {
	<-f.done
	if f.err != nil {
		return nil, f.err
	}
	return os.Open(f.path)
}
