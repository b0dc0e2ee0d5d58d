package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestUserIDs(t *testing.T) {
	root := t.TempDir()
	u := &userIDs{root: root}
	dir := func(i int) string { return filepath.Join(root, "pods", fmt.Sprint("pod-", i)) }
	take := func(i int) (int64, error) {
		t.Helper()
		if err := os.MkdirAll(dir(i), 0o755); err != nil {
			t.Fatal(err)
		}
		return u.Take(types.UID(fmt.Sprint("pod-", i)))
	}
	seen := map[int64]int{}
	for i := range podsPerRegion {
		first, err := take(i)
		if err != nil || first < usersPerPod || first%usersPerPod != 0 || first+usersPerPod > 1<<31 {
			t.Fatalf("pod %d has users from %d on, %v", i, first, err)
		}
		if other, ok := seen[first]; ok {
			t.Fatalf("pods %d and %d have the same users", i, other)
		}
		seen[first] = i
	}
	if first, err := (&userIDs{root: root}).Take("pod-7"); err != nil || seen[first] != 7 {
		t.Errorf("after a restart pod 7 has users from %d on, %v", first, err)
	}
	if _, err := take(podsPerRegion); err == nil || !strings.Contains(err.Error(), "are in use") {
		t.Errorf("one too many: %v", err)
	}
	if err := os.RemoveAll(dir(3)); err != nil {
		t.Fatal(err)
	}
	if first, err := take(podsPerRegion); err != nil || seen[first] != 3 {
		t.Errorf("what pod 3 had is not given again: %d, %v", first, err)
	}
}
