// Package datadir is the directory that holds all of a cluster that must outlive its process. One process uses it at a time.
//
//	version    the layout's version; a newer one than this program knows is refused
//	lock       held while a process uses the directory
//	process    which process that is, and where it can be spoken to
//	pki/       keys and certificates
//	etcd/      the cluster's state
//	images/    container images, shared by all nodes of the machine
//	nodes/     a directory for each node
//	log        what a detached process says
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
	"github.com/bayplan/bayplan/internal/filelock"
)

// Version is the version of the layout that this program writes.
const Version = 1

// needBytes is the room on disk without which a start is refused: etcd's log takes 64 MiB beforehand, twice.
const needBytes = 192 << 20

// Dir is an open data directory.
type Dir struct {
	path string
	lock *os.File
	// made are the directories that Open made, the outermost first.
	made []string
}

// ErrInUse is returned when another process uses the directory.
var ErrInUse = errors.New("in use by another process")

// Open makes the directory if it is not there, and locks it. An error leaves what it found.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path}
	if err := d.open(); err != nil {
		if d.lock != nil {
			_ = d.lock.Close()
		}
		return nil, errors.Join(err, d.removeMade())
	}
	return d, nil
}

func (d *Dir) open() error {
	if err := checkRoom(d.path); err != nil {
		return err
	}
	err := d.makeAll(d.path)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	d.lock, err = filelock.TryLock(d.Path("lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("data directory %s: %w; stop it by `bayplan down`, or name another directory by --data-dir", d.path, ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return d.checkVersion()
}

// makeAll is os.MkdirAll that notes what it made.
func (d *Dir) makeAll(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path {
		if err := d.makeAll(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	switch info, statErr := os.Stat(path); {
	case err == nil:
		d.made = append(d.made, path)
		return nil
	case statErr == nil && info.IsDir():
		return nil
	}
	return err
}

// Existing opens a directory that must be there.
func Existing(path string) (*Dir, error) {
	if _, err := os.Stat(filepath.Join(path, "version")); err != nil {
		return nil, fmt.Errorf("%s is not a data directory of bayplan: %w; name one by --data-dir", path, err)
	}
	return Open(path)
}

// Fresh reports whether Open made the directory.
func (d *Dir) Fresh() bool { return len(d.made) > 0 }

// Close lets other processes use the directory.
func (d *Dir) Close() error { return d.lock.Close() }

// Remove closes the directory and removes it with all that is in it. While something is mounted below it refuses: what is mounted would go too.
func (d *Dir) Remove() error {
	if mounts := mountsBelow(d.path); len(mounts) > 0 {
		return errors.Join(fmt.Errorf("data directory %s: not removed, since %s is still mounted", d.path, mounts[0]), d.lock.Close())
	}
	return errors.Join(os.RemoveAll(d.path), d.lock.Close())
}

// mountsBelow lists the mount points below path. Systems without such a list have no nodes that mount anything.
func mountsBelow(path string) []string {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	var out []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(fields[4], path+"/") {
			out = append(out, fields[4])
		}
	}
	return out
}

// Discard closes a directory that Open made and removes it with all that is in it: a start that failed leaves nothing behind.
func (d *Dir) Discard() error { return errors.Join(d.lock.Close(), d.removeMade()) }

func (d *Dir) removeMade() error {
	if !d.Fresh() {
		return nil
	}
	err := os.RemoveAll(d.path)
	for i := len(d.made) - 2; i >= 0 && err == nil; i-- {
		_ = os.Remove(d.made[i]) // somebody else may use it by now
	}
	return err
}

// checkRoom refuses a disk that is full. It asks the nearest directory that is there.
func checkRoom(path string) error {
	for at := path; ; at = filepath.Dir(at) {
		free, err := freeBytes(at)
		if errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at {
			continue
		}
		if err == nil && free < needBytes {
			return fmt.Errorf("data directory %s: no space on the disk: %d MiB are free, %d are needed; make room, or name another directory by --data-dir", path, free>>20, needBytes>>20)
		}
		return nil
	}
}

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
