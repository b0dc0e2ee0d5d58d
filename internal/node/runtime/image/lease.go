package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"github.com/bayplan/bayplan/internal/atomicfile"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ingestPrefix marks the leases of ingestions. Such a lease lives as long as its process holds its file locked.
const ingestPrefix = "ingest-"

// lease says that somebody needs layers, whatever becomes of the image.
type lease struct {
	// Owner is a directory that is deleted together with what needs the layers: without it the lease is void.
	Owner string `json:"owner,omitempty"`
	// Image is the id of the image whose layers these are, and User who needs them, for people.
	Image  string   `json:"image,omitempty"`
	User   string   `json:"user,omitempty"`
	Layers []string `json:"layers"`
}

func (s *Store) leasePath(name string) string { return filepath.Join(s.root, "leases", name+".json") }

// Lease keeps the image's layers for as long as the directory owner exists and Release was not called. user is told to who wants to remove the image. Names are the caller's; a second Lease of one name replaces the first.
func (s *Store) Lease(name, owner, user string, image *Image) error {
	if strings.HasPrefix(name, ingestPrefix) || filepath.Base(name) != name {
		return fmt.Errorf("image store: lease name %q: it must be a file name and not begin with %q", name, ingestPrefix)
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, chain := range image.Layers {
		if _, err := os.Stat(s.layerFS(chain)); err != nil {
			return fmt.Errorf("%w: layer %s of image %s is gone", ErrNotFound, chain, image.ID)
		}
	}
	text, err := json.Marshal(lease{Owner: owner, Image: image.ID, User: user, Layers: image.Layers})
	if err != nil {
		return err
	}
	return atomicfile.Write(s.leasePath(name), text, 0o600)
}

// Release ends a lease. It is idempotent.
func (s *Store) Release(name string) error {
	if err := os.Remove(s.leasePath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("image store: %w", err)
	}
	return nil
}

// users are those who hold a lease on the image, sorted.
func (s *Store) users(imageID string) ([]string, error) {
	leases, err := os.ReadDir(filepath.Join(s.root, "leases"))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	var out []string
	for _, entry := range leases {
		l, err := s.readLease(entry.Name())
		if err != nil {
			return nil, err
		}
		if l != nil && l.Image == imageID && !slices.Contains(out, l.User) {
			out = append(out, l.User)
		}
	}
	slices.Sort(out)
	return out, nil
}

// ingestion is a lease of this process on layers that no image names yet.
type ingestion struct {
	store *Store
	file  *os.File
}

// ingest begins an ingestion of these layers: from now on they are not collected.
func (s *Store) ingest(layers []string) (*ingestion, error) {
	unlock, err := s.lock() // or a Collect could find the file before it is held
	if err != nil {
		return nil, err
	}
	defer unlock()
	placeholder, err := os.CreateTemp(filepath.Join(s.root, "leases"), ingestPrefix+"*.json")
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	defer placeholder.Close()
	file, err := hold(placeholder.Name())
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(file).Encode(lease{Layers: layers}); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("image store: %w", err)
	}
	return &ingestion{store: s, file: file}, nil
}

func (i *ingestion) end() {
	_ = os.Remove(i.file.Name())
	_ = i.file.Close()
}

// Collect deletes the layers that no image and no lease names, and what ingestions left that did not end.
func (s *Store) Collect() error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	needed, ingesting, err := s.needed()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(s.root, "layers"))
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	for _, entry := range entries {
		if !needed[entry.Name()] {
			err = errors.Join(err, s.dropLayer(entry.Name()))
		}
	}
	if !ingesting {
		err = errors.Join(err, s.emptyTemporary())
	}
	return err
}

// needed gives the layers that must stay, and whether some process is ingesting right now.
func (s *Store) needed() (needed map[string]bool, ingesting bool, err error) {
	needed = map[string]bool{}
	images, err := s.List()
	if err != nil {
		return nil, false, err
	}
	for i := range images {
		for _, chain := range images[i].Layers {
			needed[chain] = true
		}
	}
	leases, err := os.ReadDir(filepath.Join(s.root, "leases"))
	if err != nil {
		return nil, false, fmt.Errorf("image store: %w", err)
	}
	for _, entry := range leases {
		l, err := s.readLease(entry.Name())
		if err != nil {
			return nil, false, err
		}
		if l == nil {
			continue
		}
		ingesting = ingesting || strings.HasPrefix(entry.Name(), ingestPrefix)
		for _, chain := range l.Layers {
			needed[chain] = true
		}
	}
	return needed, ingesting, nil
}

// readLease reads a lease; nil when there is none of that name any more. One that is void it removes.
func (s *Store) readLease(name string) (*lease, error) {
	if strings.HasPrefix(name, ".") {
		return nil, nil // on its way to become one
	}
	path := filepath.Join(s.root, "leases", name)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, nil // released meanwhile
	}
	l := &lease{}
	unreadable := json.Unmarshal(text, l)
	if s.void(name, path, l) {
		_ = os.Remove(path)
		return nil, nil
	}
	if unreadable != nil {
		return nil, fmt.Errorf("image store: lease %s cannot be read, so that nothing can be collected; remove it if its container is gone: %w", path, unreadable)
	}
	return l, nil
}

// void tells whether a lease has outlived its owner.
func (s *Store) void(name, path string, l *lease) bool {
	if strings.HasPrefix(name, ingestPrefix) {
		return abandoned(path)
	}
	if l.Owner == "" {
		return false
	}
	_, err := os.Stat(l.Owner)
	return errors.Is(err, os.ErrNotExist)
}

// dropLayer moves the layer out of sight first, so that a deletion that is cut off leaves no half layer.
func (s *Store) dropLayer(chain string) error {
	grave, err := os.MkdirTemp(filepath.Join(s.root, "tmp"), "dropped-")
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	if err := os.Rename(s.layerDir(chain), filepath.Join(grave, "layer")); err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	return os.RemoveAll(grave)
}

func (s *Store) emptyTemporary() error {
	entries, err := os.ReadDir(filepath.Join(s.root, "tmp"))
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(s.root, "tmp", entry.Name())))
	}
	return err
}
