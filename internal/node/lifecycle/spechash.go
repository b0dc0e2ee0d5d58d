package lifecycle

import (
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// SpecHash identifies what of a container can be changed in a running pod only by a restart: its image. (Resources are resized in place.)
func SpecHash(c *v1.Container) string {
	h := fnv.New32a()
	h.Write([]byte(c.Name))
	h.Write([]byte{0})
	h.Write([]byte(c.Image))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
