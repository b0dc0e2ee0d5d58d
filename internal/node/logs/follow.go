package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// follow copies what is there and what comes, until the container has ended. Changes are told by the kernel. When the log was rotated, the
// rest of the old file is read before the new one.
func (r *reader) follow(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch log: %w", err)
	}
	defer watcher.Close()
	if err := watcher.Add(filepath.Dir(r.path)); err != nil {
		return fmt.Errorf("watch log: %w", err)
	}
	ended := r.o.Ended
	last := false
	for {
		if err := r.drain(); err != nil {
			return err
		}
		rotated, err := r.rotated()
		if err != nil {
			return err
		}
		if rotated {
			// What was written between the drain and the rotation comes first.
			if err := r.drain(); err != nil {
				return err
			}
			if err := r.open(); err != nil {
				return err
			}
			continue
		}
		if last {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			last, ended = true, nil
		case _, ok := <-watcher.Events:
			if !ok {
				return errors.New("watch of the log ended")
			}
		case err := <-watcher.Errors:
			return fmt.Errorf("watch log: %w", err)
		}
	}
}

// rotated tells whether path is another file now. Between the two steps of a rotation there is none.
func (r *reader) rotated() (bool, error) {
	now, err := os.Stat(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old, err := r.file.Stat()
	if err != nil {
		return false, err
	}
	return !os.SameFile(now, old), nil
}
