package cluster

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bayplan/bayplan/internal/atomicfile"
	"github.com/bayplan/bayplan/internal/datadir"
	"github.com/bayplan/bayplan/internal/store"
)

// A snapshot is a tar archive: manifest.json, which says what the others are, then the store's database and the keys and certificates, so that kubeconfigs and
// tokens that people have work on the restored cluster. It is as secret as the data directory.
const (
	snapshotFormat   = 1
	snapshotManifest = "manifest.json"
	snapshotDatabase = "etcd.db"
	pkiPrefix        = "pki/"
)

// Manifest describes a snapshot.
type Manifest struct {
	Format  int
	Version string
	// Files has the SHA-256 sum of each file, in hexadecimal.
	Files map[string]string
}

// SaveSnapshot writes the cluster of a data directory, whether it runs or not, into one file. It appears whole or not at all.
func SaveSnapshot(ctx context.Context, dataDir, version, path string) error {
	work, err := os.MkdirTemp(filepath.Dir(path), ".bayplan-snapshot-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	database := filepath.Join(work, snapshotDatabase)
	pkiDir, err := readState(ctx, dataDir, database)
	if err != nil {
		return err
	}
	out := filepath.Join(work, "snapshot")
	if err := packSnapshot(out, version, database, pkiDir); err != nil {
		return err
	}
	if err := os.Rename(out, path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// readState writes the database of a running or stopped cluster, and says where its keys are.
func readState(ctx context.Context, dataDir, database string) (pkiDir string, err error) {
	used, err := datadir.InUse(dataDir)
	if err != nil {
		return "", err
	}
	if !used {
		return filepath.Join(dataDir, "pki"), readStopped(ctx, dataDir, database)
	}
	response, err := Inspect(ctx, dataDir, "status")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	status := Status{}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return "", err
	}
	stream, err := Inspect(ctx, dataDir, "snapshot")
	if err != nil {
		return "", err
	}
	defer stream.Body.Close()
	_, err = store.ReadSnapshot(stream.Body, database)
	return status.PKIDir, err
}

func readStopped(ctx context.Context, dataDir, database string) error {
	data, err := datadir.Existing(dataDir)
	if err != nil {
		return err
	}
	defer data.Close()
	if _, err := os.Stat(data.Path("etcd", "member")); err != nil {
		return fmt.Errorf("%s holds no state: %w", dataDir, err)
	}
	state, err := store.Open(ctx, store.Options{Dir: data.Path("etcd"), ReadyTimeout: storeReadyTimeout})
	if err != nil {
		return err
	}
	defer state.Close()
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(state.WriteSnapshot(ctx, writer)) }()
	_, err = store.ReadSnapshot(reader, database)
	_ = reader.CloseWithError(err)
	return err
}

func packSnapshot(out, version, database, pkiDir string) error {
	files := map[string]string{snapshotDatabase: database}
	entries, err := os.ReadDir(pkiDir)
	if err != nil {
		return fmt.Errorf("the cluster's keys: %w", err)
	}
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			files[pkiPrefix+e.Name()] = filepath.Join(pkiDir, e.Name())
		}
	}
	manifest := Manifest{snapshotFormat, version, map[string]string{}}
	for name, path := range files {
		if manifest.Files[name], err = sum(path); err != nil {
			return err
		}
	}
	data, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = packFiles(tar.NewWriter(file), data, files)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func packFiles(w *tar.Writer, manifest []byte, files map[string]string) error {
	header := &tar.Header{Name: snapshotManifest, Mode: 0o600, Size: int64(len(manifest)), ModTime: time.Now()}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if _, err := w.Write(manifest); err != nil {
		return err
	}
	for name, path := range files {
		if err := packFile(w, name, path); err != nil {
			return err
		}
	}
	return w.Close()
}

func packFile(w *tar.Writer, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(), ModTime: info.ModTime()}); err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}

func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// firstLine is what a server said of an error.
func firstLine(r io.Reader) string {
	line, _ := bufio.NewReader(io.LimitReader(r, 4<<10)).ReadString('\n')
	return strings.TrimSpace(line)
}
