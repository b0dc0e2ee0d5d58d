//go:build !linux

package image

import (
	"context"
	"io"
)

func unpack(context.Context, string, io.Reader, []string, Limits) (int64, error) { return 0, errLinux }
func syncTree(string) error                                                      { return errLinux }
