//go:build !linux

package cgroup

// awaitEmpty has nothing to wait for: there are no cgroups.
func awaitEmpty(string, string) bool { return false }
