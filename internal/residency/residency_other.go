//go:build !linux

package residency

// DropProgram does nothing: this system decides by itself what stays mapped.
func DropProgram() error { return nil }
