package volume

import (
	"fmt"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// emptyDir makes the directory: on disk or, with the medium Memory, a tmpfs. Everybody may write to it; with an fsGroup new files belong
// to that group.
func (m *Manager) emptyDir(pod *v1.Pod, vol *v1.Volume) error {
	dir := m.dir(pod.UID, vol)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	e := vol.EmptyDir
	switch e.Medium {
	case v1.StorageMediumDefault:
	case v1.StorageMediumMemory:
		if err := mountTmpfs(dir, m.tmpfsSize(pod, e)); err != nil {
			return fmt.Errorf("memory volume: %w", err)
		}
	default:
		if name, huge := hugepages(pod, e.Medium); huge {
			return mountHugepages(dir, name, value(e.SizeLimit), fsGroup(pod))
		}
		return fmt.Errorf("emptyDir with medium %q is not supported by this node", e.Medium)
	}
	return shareDir(dir, fsGroup(pod))
}

// hugepages is the size of the huge pages that a medium asks for: HugePages-2Mi says it, and with HugePages it is that of which the pod requests some.
func hugepages(pod *v1.Pod, medium v1.StorageMedium) (*resource.Quantity, bool) {
	text, ok := strings.CutPrefix(string(medium), string(v1.StorageMediumHugePagesPrefix))
	if !ok && medium == v1.StorageMediumHugePages {
		for name := range podresource.PodRequests(pod, podresource.PodResourcesOptions{}) {
			if text, ok = strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
				break
			}
		}
	}
	size, err := resource.ParseQuantity(text)
	return &size, ok && err == nil
}

// tmpfsSize is the least of the volume's own limit, the pod's memory limit and the node's memory.
func (m *Manager) tmpfsSize(pod *v1.Pod, e *v1.EmptyDirVolumeSource) int64 {
	size := m.node().Allocatable.Memory().Value()
	for _, limit := range []int64{translate.PodResources(pod).MemoryLimitInBytes, value(e.SizeLimit)} {
		if limit > 0 && (size <= 0 || limit < size) {
			size = limit
		}
	}
	return size
}

// shareDir opens a directory for everybody, whatever the umask of the agent is.
func shareDir(dir string, group *int64) error {
	perm := os.FileMode(0o777)
	if group != nil {
		if err := os.Chown(dir, -1, int(*group)); err != nil {
			return fmt.Errorf("give the volume to fsGroup %d: %w", *group, err)
		}
		perm |= os.ModeSetgid
	}
	return os.Chmod(dir, perm)
}

func value(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}
