package cluster

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bayplan/bayplan/internal/atomicfile"
	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/store"
)

// ErrNotEmpty refuses to restore over a cluster's state.
var ErrNotEmpty = errors.New("it holds the state of a cluster already; name another directory by --data-dir, or replace that state by --force")

// RestoreSnapshot makes the state of a data directory from a snapshot. Without force the directory must hold none. State that is replaced goes only after the new
// one is whole.
func RestoreSnapshot(ctx context.Context, dataDir, path string, force bool) (err error) {
	data, err := datadir.Open(dataDir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && data.Fresh() {
			err = errors.Join(err, data.Discard())
			return
		}
		err = errors.Join(err, data.Close())
	}()
	_, statErr := os.Stat(data.Path("etcd"))
	if statErr == nil && !force {
		return fmt.Errorf("data directory %s: %w", dataDir, ErrNotEmpty)
	}
	work, err := os.MkdirTemp(data.Path(), ".restore-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := unpackSnapshot(path, work); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := store.Restore(ctx, filepath.Join(work, snapshotDatabase), filepath.Join(work, "etcd"), storeReadyTimeout); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return errors.Join(replace(data, work, "pki"), replace(data, work, "etcd"), atomicfile.SyncDir(data.Path()))
}

// replace puts what is in work into its place. What was there goes into work, and away with it.
func replace(data *datadir.Dir, work, name string) error {
	old := filepath.Join(work, "old-"+name)
	if err := os.Rename(data.Path(name), old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(filepath.Join(work, name), data.Path(name))
}

func unpackSnapshot(path, dir string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewReader(file)
	manifest, err := readManifest(archive)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "pki"), 0o700); err != nil {
		return err
	}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrDamaged, err)
		}
		if err := unpackFile(archive, header.Name, manifest, dir); err != nil {
			return err
		}
		delete(manifest.Files, header.Name)
	}
	for name := range manifest.Files {
		return fmt.Errorf("%w: %s is missing", store.ErrDamaged, name)
	}
	return nil
}

func readManifest(archive *tar.Reader) (Manifest, error) {
	m := Manifest{}
	header, err := archive.Next()
	if err != nil || header.Name != snapshotManifest {
		return m, errors.New("this is not a snapshot of bayplan")
	}
	if err := json.NewDecoder(archive).Decode(&m); err != nil {
		return m, fmt.Errorf("%w: its manifest: %w", store.ErrDamaged, err)
	}
	if m.Format > snapshotFormat {
		return m, fmt.Errorf("it was written by a newer bayplan (%s, format %d; this one knows %d)", m.Version, m.Format, snapshotFormat)
	}
	return m, nil
}

func unpackFile(archive *tar.Reader, name string, manifest Manifest, dir string) error {
	want, known := manifest.Files[name]
	base, isKey := strings.CutPrefix(name, pkiPrefix)
	if !known || name != snapshotDatabase && (!isKey || base != filepath.Base(base) || base == "..") {
		return fmt.Errorf("%w: %q does not belong into it", store.ErrDamaged, name)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, archive)
	if err == nil {
		err = out.Sync()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("%w: %s: %w", store.ErrDamaged, name, err)
	}
	if got, err := sum(path); err != nil || got != want {
		return errors.Join(fmt.Errorf("%w: %s has another checksum", store.ErrDamaged, name), err)
	}
	return nil
}
