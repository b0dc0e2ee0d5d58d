package node

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// userIDs gives pods with a user namespace their users on the machine: 65536 of them each, which no other pod of the node has. Nodes of one machine
// have different regions, by their directories. What was given is in a file of the pod's directory, and free again when that is gone.
type userIDs struct {
	root string
	mu   sync.Mutex
}

const (
	usersFile = "userns"
	// Regions begin above the machine's own users and end below 2³¹, which some programs take for the end of users.
	usersPerPod, podsPerRegion, regions = 1 << 16, 256, 127
)

// Take returns the first user of the pod, the same for every call.
func (u *userIDs) Take(uid types.UID) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	path := filepath.Join(u.root, "pods", string(uid), usersFile)
	if first, err := readUser(path); !errors.Is(err, os.ErrNotExist) {
		return first, err
	}
	files, err := filepath.Glob(filepath.Join(u.root, "pods", "*", usersFile))
	if err != nil {
		return 0, err
	}
	var taken []int64
	for _, file := range files {
		if first, err := readUser(file); err == nil { // else it was removed meanwhile
			taken = append(taken, first)
		}
	}
	for i := range int64(podsPerRegion) {
		first := u.base() + i*usersPerPod
		if slices.Contains(taken, first) {
			continue
		}
		if err := os.WriteFile(path, []byte(strconv.FormatInt(first, 10)), 0o600); err != nil {
			return 0, fmt.Errorf("users of the pod: %w", err)
		}
		return first, nil
	}
	return 0, fmt.Errorf("all %d user namespaces of the node are in use", podsPerRegion)
}

// base is where the node's region begins.
func (u *userIDs) base() int64 {
	h := fnv.New32a()
	h.Write([]byte(u.root))
	return usersPerPod * (1 + int64(h.Sum32()%regions)*podsPerRegion)
}

func readUser(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return first, nil
}
