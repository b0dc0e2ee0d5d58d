//go:build !linux

package node

import "errors"

var errLinux = errors.New("real nodes need Linux; simulated nodes (--sim-nodes) run everywhere")

func inspectMachine(string) (machine, error) { return machine{}, errLinux }

func diskUsage(string) (capacity, free int64, err error) { return 0, 0, errLinux }

func freeMemory() (int64, error) { return 0, errLinux }

func freePIDs() (int64, error) { return 0, errLinux }
