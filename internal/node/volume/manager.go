// Package volume makes the volumes of pods: directories below the pod's own directory, filled with what the manifest names, and the mounts
// by which containers get them.
//
//	pod.spec.volumes ──SetUp──► <root>/pods/<uid>/volumes/<kind>/<name> ──Mounts──► cri.Mount (bind mounts made by the runtime)
//
// ConfigMaps, Secrets, the downward API and tokens are written as one payload that changes atomically: all files are in a directory of their
// own, to which the symbolic link ..data points, and an update swaps the link. SetUp is called again to refresh them. Nothing that a container
// puts into a volume can lead the agent out of it: sub-paths are resolved by the kernel beneath the volume and pinned before use.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/node/translate"
)

// Manager makes volumes. Make it with New.
type Manager struct {
	client  kubernetes.Interface
	sources translate.Sources
	node    func() *translate.Node
	clock   clock.PassiveClock

	mu     sync.Mutex
	tokens map[tokenKey]*token
	// certificates are those of pods, asked for by this process: keys are never on disk but in the pod's volume.
	certificates map[certificateKey]*podCertificate
}

// New makes a manager that keeps the volumes below the node's root directory.
func New(client kubernetes.Interface, sources translate.Sources, node func() *translate.Node, c clock.PassiveClock) *Manager {
	return &Manager{client: client, sources: sources, node: node, clock: c, tokens: map[tokenKey]*token{}, certificates: map[certificateKey]*podCertificate{}}
}

func (m *Manager) podDir(uid types.UID) string {
	return filepath.Join(m.node().RootDir, "pods", string(uid))
}

// SetUp makes all volumes of the pod, or brings their content up to date. All failures are told, not only the first.
func (m *Manager) SetUp(ctx context.Context, pod *v1.Pod) error {
	var failed error
	for i := range pod.Spec.Volumes {
		vol := &pod.Spec.Volumes[i]
		if err := m.setUp(ctx, pod, vol); err != nil {
			failed = errors.Join(failed, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", vol.Name, err))
		}
	}
	return failed
}

// Refreshes tells whether the pod has volumes whose content changes.
func (m *Manager) Refreshes(pod *v1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if s := &pod.Spec.Volumes[i].VolumeSource; s.ConfigMap != nil || s.Secret != nil || s.DownwardAPI != nil || s.Projected != nil {
			return true
		}
	}
	return false
}

func (m *Manager) setUp(ctx context.Context, pod *v1.Pod, vol *v1.Volume) error {
	s := &vol.VolumeSource
	switch {
	case s.EmptyDir != nil:
		return m.emptyDir(pod, vol)
	case s.HostPath != nil:
		return checkHostPath(s.HostPath)
	case s.Image != nil:
		return nil // the runtime mounts it
	case s.ConfigMap != nil, s.Secret != nil, s.DownwardAPI != nil, s.Projected != nil:
		files, err := m.payload(ctx, pod, s)
		if err != nil {
			return err
		}
		dir := m.dir(pod.UID, vol)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if s.ConfigMap == nil { // what is or may be secret is never on disk
			if err := mountSecret(dir); err != nil {
				return err
			}
		}
		return writePayload(dir, files, fsGroup(pod), m.clock.Now())
	case s.PersistentVolumeClaim != nil, s.Ephemeral != nil:
		_, err := m.claimPath(ctx, pod, vol)
		return err
	}
	return fmt.Errorf("volumes of this kind (%s) are not supported by this node", kindOf(s))
}

// kindOf names the field of a volume source that is set.
func kindOf(s *v1.VolumeSource) string {
	for name, set := range map[string]bool{
		"nfs": s.NFS != nil, "iscsi": s.ISCSI != nil, "csi": s.CSI != nil, "gitRepo": s.GitRepo != nil,
		"fc": s.FC != nil, "glusterfs": s.Glusterfs != nil, "rbd": s.RBD != nil, "cephfs": s.CephFS != nil, "flexVolume": s.FlexVolume != nil,
		"awsElasticBlockStore": s.AWSElasticBlockStore != nil, "gcePersistentDisk": s.GCEPersistentDisk != nil, "azureFile": s.AzureFile != nil,
		"azureDisk": s.AzureDisk != nil, "vsphereVolume": s.VsphereVolume != nil, "portworxVolume": s.PortworxVolume != nil, "cinder": s.Cinder != nil,
	} {
		if set {
			return name
		}
	}
	return "unknown"
}

// dir is where a volume that the agent makes is.
func (m *Manager) dir(uid types.UID, vol *v1.Volume) string {
	kind := "kubernetes.io~projected"
	switch s := &vol.VolumeSource; {
	case s.EmptyDir != nil:
		kind = "kubernetes.io~empty-dir"
	case s.ConfigMap != nil:
		kind = "kubernetes.io~configmap"
	case s.Secret != nil:
		kind = "kubernetes.io~secret"
	case s.DownwardAPI != nil:
		kind = "kubernetes.io~downward-api"
	}
	return filepath.Join(m.podDir(uid), "volumes", kind, vol.Name)
}

// path is the host's directory (or file) behind a volume.
func (m *Manager) path(ctx context.Context, pod *v1.Pod, vol *v1.Volume) (string, error) {
	switch s := &vol.VolumeSource; {
	case s.HostPath != nil:
		return s.HostPath.Path, nil
	case s.PersistentVolumeClaim != nil, s.Ephemeral != nil:
		return m.claimPath(ctx, pod, vol)
	}
	return m.dir(pod.UID, vol), nil
}

// Unmount unmounts what is mounted in the pod's directory: memory volumes, which lose their content, and sub-paths.
func (m *Manager) Unmount(uid types.UID) error {
	if err := unmountBelow(m.podDir(uid)); err != nil {
		return fmt.Errorf("volumes of pod %s: %w", uid, err)
	}
	return nil
}

// TearDown unmounts what is mounted in the pod's directory and removes its volumes. A tree is never removed while something is mounted in
// it, for that would delete what is behind the mount.
func (m *Manager) TearDown(_ context.Context, uid types.UID) error {
	m.forgetTokens(uid)
	if err := m.Unmount(uid); err != nil {
		return err
	}
	dir := m.podDir(uid)
	return errors.Join(os.RemoveAll(filepath.Join(dir, "volumes")), os.RemoveAll(filepath.Join(dir, "volume-subpaths")))
}

// fsGroup is the group that volumes are given to, nil when there is none.
func fsGroup(pod *v1.Pod) *int64 {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	return pod.Spec.SecurityContext.FSGroup
}
