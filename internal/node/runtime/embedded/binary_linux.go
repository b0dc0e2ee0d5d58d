package embedded

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// helperFiles holds the helper's binary if the product was built with one; README.md keeps the folder in a fresh clone.
//
//go:embed helper
var helperFiles embed.FS

// ErrNoHelper says that this binary was built without the pod helper.
var ErrNoHelper = errors.New("this binary was built without the pod helper, which real nodes need: run `make build` (or runtime-helper/build.sh), or use simulated nodes (--sim-nodes)")

// installHelper gives the path of the helper's binary, written below dir by its hash. Pods that were started with another version
// go on with that.
func installHelper(dir string) (string, error) {
	content, err := helperFiles.ReadFile("helper/bayplan-pod-linux-" + runtime.GOARCH)
	if errors.Is(err, fs.ErrNotExist) {
		return "", ErrNoHelper
	}
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, "bayplan-pod-"+hex.EncodeToString(sum[:8]))
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(content)) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("install the pod helper: %w", err)
	}
	if err := writeFile(path, content, 0o700); err != nil {
		return "", fmt.Errorf("install the pod helper: %w", err)
	}
	return path, nil
}
