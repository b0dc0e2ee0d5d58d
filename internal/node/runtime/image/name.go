package image

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/distribution/reference"
)

// normalize gives the full form of an image's name: `hello:1` is `docker.io/library/hello:1`, `hello` has the tag latest, and a name with
// both tag and digest keeps the digest, which says more.
func normalize(ref string) (string, error) {
	named, err := reference.ParseDockerRef(ref)
	if err != nil {
		return "", fmt.Errorf("image name %q: %w", ref, err)
	}
	return named.String(), nil
}

// Normalize gives the full form of an image's name, as the store keeps it.
func Normalize(ref string) (string, error) { return normalize(ref) }

// repository gives the name without tag and digest.
func repository(name string) string {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return name
	}
	return reference.TrimNamed(named).String()
}

// minIDPrefix is how many digits of an id are taken for one: fewer are more likely a name.
const minIDPrefix = 12

// isID tells whether ref is an image id or the beginning of one, with or without its algorithm.
func isID(ref string) bool {
	digits, prefixed := strings.CutPrefix(ref, "sha256:")
	if len(digits) > 64 || !prefixed && len(digits) < minIDPrefix || digits == "" {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// find gives the position of the image that ref means.
func find(images []Image, ref string) (int, error) {
	if isID(ref) {
		if i, err := findID(images, ref); i >= 0 || err != nil {
			return i, err
		}
	}
	name, err := normalize(ref)
	if err != nil {
		return -1, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	for i := range images {
		if slices.Contains(images[i].Tags, name) || slices.Contains(images[i].Digests, name) {
			return i, nil
		}
	}
	return -1, fmt.Errorf("%w: %s", ErrNotFound, name)
}

func findID(images []Image, ref string) (int, error) {
	prefix := "sha256:" + strings.TrimPrefix(ref, "sha256:")
	found := -1
	for i := range images {
		if !strings.HasPrefix(images[i].ID, prefix) {
			continue
		}
		if found >= 0 {
			return -1, fmt.Errorf("image id %s is the beginning of several images' ids: give more of its digits", ref)
		}
		found = i
	}
	return found, nil
}

func without(list []string, gone ...string) []string {
	return slices.DeleteFunc(list, func(name string) bool { return slices.Contains(gone, name) })
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

func compare(a, b string) int { return cmp.Compare(a, b) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
