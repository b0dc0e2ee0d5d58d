//go:build !linux

package volume

import "errors"

var errLinux = errors.New("mounting needs Linux: real nodes run there only, simulated nodes (--sim-nodes) everywhere")

func mountTmpfs(string, int64) error { return errLinux }

// mountSecret leaves secrets in the directory where nothing can be mounted.
func mountSecret(string) error { return nil }

// unmountBelow has nothing to do where nothing can be mounted.
func unmountBelow(string) error { return nil }

func pinSubPath(string, string, string, *int64) (string, error) { return "", errLinux }
