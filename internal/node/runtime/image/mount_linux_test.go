package image

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting an overlay needs root")
	}
	store := open(t)
	image, err := store.add(t.Context(), imageOf(t,
		[]entry{{name: "keep", content: "1", kind: tar.TypeReg}, {name: "gone", content: "2", kind: tar.TypeReg}, {name: "d/", kind: tar.TypeDir}, {name: "d/old", kind: tar.TypeReg}},
		[]entry{{name: ".wh.gone", kind: tar.TypeReg}, {name: "d/.wh..wh..opq", kind: tar.TypeReg}, {name: "d/new", kind: tar.TypeReg}},
	), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	dir, target := filepath.Join(base, "rw"), filepath.Join(base, "rootfs")
	if err := store.Mount(&image, dir, target, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Unmount(target) })
	for path, want := range map[string]bool{"keep": true, "gone": false, "d/old": false, "d/new": true} {
		if _, err := os.Lstat(filepath.Join(target, path)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", path, err == nil, want)
		}
	}
	if err := os.WriteFile(filepath.Join(target, "written"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Unmount(target); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(target, "keep")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal("still mounted")
	}
	if _, err := os.Stat(filepath.Join(dir, "upper", "written")); err != nil {
		t.Fatalf("what was written is lost: %v", err)
	}
}

func TestMountOfManyLayers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting an overlay needs root")
	}
	store := open(t)
	var layers [][]entry
	for i := range 60 {
		layers = append(layers, []entry{{name: string(rune('A' + i)), kind: tar.TypeReg}})
	}
	image, err := store.add(t.Context(), imageOf(t, layers...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	target := filepath.Join(base, "rootfs")
	if err := store.Mount(&image, filepath.Join(base, "rw"), target, nil); err != nil {
		t.Fatal(err)
	}
	defer Unmount(target)
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 60 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
}
