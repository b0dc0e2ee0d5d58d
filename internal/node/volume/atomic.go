package volume

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The names by which a payload is swapped. A payload can't have files whose names begin with two dots.
const (
	dataLink = "..data"
	newLink  = "..data_tmp"
)

// writePayload makes files the content of the volume, all at once: readers see the old files or the new ones. Nothing is touched when the
// content is there already.
func writePayload(dir string, payload files, group *int64, now time.Time) error {
	for path := range payload {
		if err := checkPath(path); err != nil {
			return err
		}
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err == nil && sameContent(filepath.Join(dir, old), payload) {
		return linkNames(dir, payload)
	}
	fresh, err := os.MkdirTemp(dir, now.UTC().Format("..2006_01_02_15_04_05.")+"*")
	if err != nil {
		return err
	}
	if err := fill(fresh, payload, group); err != nil {
		os.RemoveAll(fresh)
		return err
	}
	if err := swap(dir, filepath.Base(fresh)); err != nil {
		os.RemoveAll(fresh)
		return err
	}
	if err := linkNames(dir, payload); err != nil {
		return err
	}
	return removeStale(dir, payload, filepath.Base(fresh))
}

// checkPath refuses what would lead out of the volume or in the way of the swap.
func checkPath(path string) error {
	if !filepath.IsLocal(filepath.FromSlash(path)) || filepath.Clean(path) != path || path == "." || strings.HasPrefix(path, "..") {
		return fmt.Errorf("invalid path %q in the volume: it must be relative, must not begin with '..' nor have '..' in it", path)
	}
	return nil
}

func fill(dir string, payload files, group *int64) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for path, f := range payload {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, f.data, 0o600); err != nil {
			return err
		}
		perm := os.FileMode(f.mode) & os.ModePerm
		if group != nil {
			perm |= 0o440
			if err := os.Chown(full, -1, int(*group)); err != nil {
				return fmt.Errorf("give %s to fsGroup %d: %w", path, *group, err)
			}
		}
		if err := os.Chmod(full, perm); err != nil {
			return err
		}
	}
	return nil
}

func swap(dir, fresh string) error {
	link := filepath.Join(dir, newLink)
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Symlink(fresh, link); err != nil {
		return err
	}
	return os.Rename(link, filepath.Join(dir, dataLink))
}

// topNames are the names in the volume's root.
func topNames(payload files) map[string]bool {
	names := map[string]bool{}
	for path := range payload {
		top, _, _ := strings.Cut(path, "/")
		names[top] = true
	}
	return names
}

func linkNames(dir string, payload files) error {
	for name := range topNames(payload) {
		target := filepath.Join(dataLink, name)
		if have, err := os.Readlink(filepath.Join(dir, name)); err == nil && have == target {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeStale takes former payloads and names away.
func removeStale(dir string, payload files, current string) error {
	names := topNames(payload)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); !names[name] && name != dataLink && name != current {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameContent(dir string, payload files) bool {
	found := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if want, ok := payload[filepath.ToSlash(rel)]; !ok || !bytes.Equal(want.data, data) {
			return os.ErrNotExist
		}
		found++
		return nil
	})
	return err == nil && found == len(payload)
}
