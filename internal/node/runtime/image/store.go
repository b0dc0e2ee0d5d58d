package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bayplan/bayplan/internal/atomicfile"
	"github.com/bayplan/bayplan/internal/keylock"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Image is one image of the store.
type Image struct {
	// ID is the digest of the image's config, `sha256:...`. It is what the CRI calls the image's id.
	ID string `json:"id"`
	// Tags are full names with a tag, `docker.io/library/hello:1`.
	Tags []string `json:"tags,omitempty"`
	// Digests are full names with the digest of a manifest, `docker.io/library/hello@sha256:...`.
	Digests []string `json:"digests,omitempty"`
	// Layers are the chain ids of the layers, hexadecimal, lowest first.
	Layers []string `json:"layers"`
	// Size is what the unpacked layers take, in bytes.
	Size     int64     `json:"size"`
	Added    time.Time `json:"added"`
	Platform string    `json:"platform"`
	// Config is how the image wants to be run.
	Config v1.Config `json:"config"`
}

// Mapping shows files to the users of a user namespace as they are for the machine's: what belongs to root in an image belongs to root there.
type Mapping struct {
	// Namespace is the file of the user namespace.
	Namespace string
	// Root is who the namespace's root is on the machine.
	Root int
}

// ErrNotFound says that the store has no such image.
var ErrNotFound = errors.New("image not found")

// ErrInUse says that containers need an image.
var ErrInUse = errors.New("is in use")

// Limits bound what one image may unpack to, against archives that are made to fill the disk.
type Limits struct {
	// Bytes is the size of all files of one layer.
	Bytes int64
	// Files is the number of entries of one layer.
	Files int
}

// DefaultLimits are far above any image that people use.
var defaultLimits = Limits{Bytes: 64 << 30, Files: 4_000_000}

// Store is an image store. Its methods may be called from several goroutines and processes at once.
type Store struct {
	root   string
	limits Limits
	// registries is where package registries finds its configuration.
	registries string
	now        func() time.Time

	mu     sync.Mutex
	cached []Image
	stamp  os.FileInfo // of the index file that cached was read from

	layers keylock.Locks
}

// Option changes how a store is opened.
type Option func(*Store)

// WithLimits replaces the default limits.
func WithLimits(limits Limits) Option { return func(s *Store) { s.limits = limits } }

// WithRegistries names the folder that tells where registries' images are to be fetched (package registries). Without it, that is "registries" beside
// the store.
func WithRegistries(dir string) Option { return func(s *Store) { s.registries = dir } }

// Open opens the store in the directory root, and makes it if need be.
func Open(root string, options ...Option) (*Store, error) {
	s := &Store{root: root, limits: defaultLimits, now: time.Now, registries: filepath.Join(filepath.Dir(root), "registries")}
	for _, option := range options {
		option(s)
	}
	for _, dir := range []string{"layers", "leases", "tmp"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	// Containers that do not run as root walk through these directories to their files.
	for _, dir := range []string{root, filepath.Join(root, "layers")} {
		if err := os.Chmod(dir, 0o711); err != nil {
			return nil, fmt.Errorf("image store: %w", err)
		}
	}
	return s, nil
}

// Root is the directory of the store.
func (s *Store) Root() string { return s.root }

func (s *Store) indexPath() string            { return filepath.Join(s.root, "index.json") }
func (s *Store) layerDir(chain string) string { return filepath.Join(s.root, "layers", chain) }
func (s *Store) layerFS(chain string) string  { return filepath.Join(s.layerDir(chain), "fs") }

// List gives all images, by id.
func (s *Store) List() ([]Image, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stamp, err := os.Stat(s.indexPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	if s.stamp != nil && os.SameFile(s.stamp, stamp) && s.stamp.ModTime().Equal(stamp.ModTime()) {
		return slices.Clone(s.cached), nil
	}
	text, err := os.ReadFile(s.indexPath())
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var images []Image
	if err := json.Unmarshal(text, &images); err != nil {
		return nil, fmt.Errorf("image store: %s: %w", s.indexPath(), err)
	}
	s.cached, s.stamp = images, stamp
	return slices.Clone(images), nil
}

// Get finds an image by a name as users write it, by a name with a digest, or by an id or the beginning of one.
func (s *Store) Get(ref string) (Image, error) {
	images, err := s.List()
	if err != nil {
		return Image{}, err
	}
	i, err := find(images, ref)
	if err != nil {
		return Image{}, err
	}
	return images[i], nil
}

// Remove takes a name away from its image, or the whole image if ref is an id or the name was its last. An image that containers use stays, and the
// error, an ErrInUse, says whose they are. Layers that nothing else needs are deleted.
func (s *Store) Remove(ref string) error {
	err := s.change(func(images []Image) ([]Image, error) {
		i, err := find(images, ref)
		if err != nil {
			return nil, err
		}
		image := &images[i]
		if named, err := normalize(ref); err == nil && !isID(ref) {
			image.Tags = without(image.Tags, named)
			image.Digests = without(image.Digests, named)
			if len(image.Tags) > 0 {
				return images, nil
			}
		}
		users, err := s.users(image.ID)
		if err != nil {
			return nil, err
		}
		if len(users) > 0 {
			return nil, fmt.Errorf("image %s %w by %s: delete what uses it first", ref, ErrInUse, strings.Join(users, ", "))
		}
		return slices.Delete(images, i, i+1), nil
	})
	if err != nil {
		return err
	}
	return s.Collect()
}

// change replaces the index by what edit makes of it, under the lock of the store. edit may change its argument.
func (s *Store) change(edit func([]Image) ([]Image, error)) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	images, err := s.List()
	if err != nil {
		return err
	}
	for i := range images { // edit must not reach into the cache
		images[i].Tags = slices.Clone(images[i].Tags)
		images[i].Digests = slices.Clone(images[i].Digests)
	}
	if images, err = edit(images); err != nil {
		return err
	}
	slices.SortFunc(images, func(a, b Image) int { return compare(a.ID, b.ID) })
	text, err := json.Marshal(images)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(s.indexPath(), text, 0o600); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return nil
}

// put enters an image into the index, or its new names if it is there. A tag names one image: others lose it.
func (s *Store) put(image Image) error {
	return s.change(func(images []Image) ([]Image, error) {
		for i := range images {
			images[i].Tags = without(images[i].Tags, image.Tags...)
		}
		i := slices.IndexFunc(images, func(other Image) bool { return other.ID == image.ID })
		if i < 0 {
			return append(images, image), nil
		}
		image.Tags = union(images[i].Tags, image.Tags)
		image.Digests = union(images[i].Digests, image.Digests)
		image.Added = images[i].Added
		images[i] = image
		return images, nil
	})
}

// Usage gives what the store takes on disk: bytes of unpacked layers, and how many layers there are.
func (s *Store) Usage() (bytes int64, layers int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.root, "layers"))
	if err != nil {
		return 0, 0, fmt.Errorf("image store: %w", err)
	}
	for _, entry := range entries {
		bytes += s.layerSize(entry.Name())
	}
	return bytes, len(entries), nil
}
