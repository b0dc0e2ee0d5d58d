package pod

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
)

// writeRecord makes a container's state durable. What was acknowledged before a crash is found after it.
func writeRecord(dir string, state *protocol.ContainerState) error {
	body, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, protocol.RecordName), body); err != nil {
		return fmt.Errorf("record of container %s: %w", state.ID, err)
	}
	return nil
}

func readRecord(dir string) (*protocol.ContainerState, error) {
	body, err := os.ReadFile(filepath.Join(dir, protocol.RecordName))
	if err != nil {
		return nil, err
	}
	state := &protocol.ContainerState{}
	return state, json.Unmarshal(body, state)
}

// writeFile replaces a file as a whole: whoever reads it, even after a loss of power, reads the old or the new text.
func writeFile(path string, text []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(temporary)
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
