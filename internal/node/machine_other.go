//go:build !linux

package node

import "errors"

func inspectMachine(string) (machine, error) {
	return machine{}, errors.New("real nodes need Linux; simulated nodes (--sim-nodes) run everywhere")
}
