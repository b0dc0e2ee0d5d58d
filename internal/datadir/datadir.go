// Package datadir is the directory that holds all of a cluster that must outlive its process. One process uses it at a time.
//
//	version    the layout's version; a newer one than this program knows is refused
//	lock       held while a process uses the directory
//	pki/       keys and certificates
//	etcd/      the cluster's state
//	images/    container images, shared by all nodes of the machine
//	nodes/     a directory for each node
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/bayplan/bayplan/internal/atomicfile"
)

// Version is the version of the layout that this program writes.
const Version = 1

// Dir is an open data directory.
type Dir struct {
	path string
	lock *os.File
}

// ErrInUse is returned when another process uses the directory.
var ErrInUse = errors.New("in use by another process")

// Open makes the directory if it is not there, and locks it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &Dir{path, lock}
	if err := tryLock(lock); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("data directory %s: %w; stop that process, or name another directory by --data-dir", path, err)
	}
	if err := d.checkVersion(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Close lets other processes use the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// Path returns the path of something in the directory.
func (d *Dir) Path(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

func (d *Dir) checkVersion() error {
	data, err := os.ReadFile(d.Path("version"))
	if errors.Is(err, fs.ErrNotExist) {
		return atomicfile.Write(d.Path("version"), []byte(strconv.Itoa(Version)+"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return fmt.Errorf("%s does not hold a number; the directory is not one of bayplan's, or it is damaged", d.Path("version"))
	}
	if version > Version {
		return fmt.Errorf("data directory %s was written by a newer bayplan (layout %d, this one knows %d); use that one, or name another directory by --data-dir", d.path, version, Version)
	}
	return nil
}
