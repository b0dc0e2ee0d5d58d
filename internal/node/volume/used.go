package volume

import (
	"io/fs"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
)

// Used is how many bytes the files in a volume of the pod have. What can't be read, because it is being removed for instance, counts nothing.
func (m *Manager) Used(pod *v1.Pod, vol *v1.Volume) int64 {
	sum := int64(0)
	_ = filepath.WalkDir(m.dir(pod.UID, vol), func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}
