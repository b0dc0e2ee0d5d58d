package embedded

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// sandboxRecord is a pod sandbox as it is on disk.
type sandboxRecord struct {
	ID        string    `json:"id"`
	Config    []byte    `json:"config"` // cri.PodSandboxConfig
	Handler   string    `json:"handler,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	// Boot is the id of the boot in which the sandbox was made; in another one nothing of it is left.
	Boot string `json:"boot"`
	// Ready is false before the sandbox is complete, and again once it was stopped.
	Ready bool `json:"ready"`
	// Created is true once the sandbox was complete. Before, it is no more than rubbish to clear.
	Created   bool     `json:"created"`
	Addresses []string `json:"addresses,omitempty"`
}

// containerRecord is a container as it is on disk.
type containerRecord struct {
	ID        string    `json:"id"`
	SandboxID string    `json:"sandboxID"`
	Config    []byte    `json:"config"` // cri.ContainerConfig
	ImageID   string    `json:"imageID"`
	ImageRef  string    `json:"imageRef"`
	CreatedAt time.Time `json:"createdAt"`
	// StartError is why the container could not be started; then it is over.
	StartError string    `json:"startError,omitempty"`
	FailedAt   time.Time `json:"failedAt,omitzero"`
}

const (
	sandboxFile   = "sandbox.json"
	containerFile = "container.json"
)

func writeRecord(path string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return writeFile(path, text, 0o600)
}

// noteRecord writes the first record of what was not acknowledged yet. It need not outlive a loss of power, as nothing of it would run then.
func noteRecord(path string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func readRecord(path string, record any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, record); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// writeFile replaces a file as a whole, durably.
func writeFile(path string, text []byte, mode os.FileMode) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
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
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new")
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

func encodeSandboxConfig(config *cri.PodSandboxConfig) ([]byte, error) { return proto.Marshal(config) }

func decodeSandboxConfig(text []byte) (*cri.PodSandboxConfig, error) {
	config := &cri.PodSandboxConfig{}
	return config, proto.Unmarshal(text, config)
}

func encodeContainerConfig(config *cri.ContainerConfig) ([]byte, error) { return proto.Marshal(config) }

func decodeContainerConfig(text []byte) (*cri.ContainerConfig, error) {
	config := &cri.ContainerConfig{}
	return config, proto.Unmarshal(text, config)
}

// bootID names this boot of the machine.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(text[:min(36, len(text))])
}
