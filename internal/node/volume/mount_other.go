//go:build !linux

package volume

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/resource"
)

var errLinux = errors.New("mounting needs Linux: real nodes run there only, simulated nodes (--sim-nodes) everywhere")

func mountTmpfs(string, int64) error { return errLinux }

func mountHugepages(string, *resource.Quantity, int64, *int64) error { return errLinux }

// mountSecret leaves secrets in the directory where nothing can be mounted.
func mountSecret(string) error { return nil }

// unmountBelow has nothing to do where nothing can be mounted.
func unmountBelow(string) error { return nil }

func pinSubPath(string, string, string, *int64) (string, error) { return "", errLinux }
