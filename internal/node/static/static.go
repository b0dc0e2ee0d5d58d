// Package static reads the pods that a node runs by itself: manifests in a directory, which need no API server. It makes of each file the pod that the
// kubelet would make of it, with the same name, UID and annotations, and with the defaults that the API server would have filled in.
//
//	directory ──Read──► pods of this node ──► workers
//	                         └──Mirror──► the object by which the API shows such a pod
package static

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// The annotations of static pods and of their mirrors.
const (
	annotationSource = "kubernetes.io/config.source"
	annotationHash   = "kubernetes.io/config.hash"
)

// maxManifest is how large a manifest may be, in bytes.
const maxManifest = 10 << 20

// Read reads all manifests in a directory. A file that is no manifest of a pod is an error that keeps nothing from the others. Names that begin with
// a dot, and directories, are not looked at; a directory that isn't there is an empty one.
func Read(dir, node string) ([]*v1.Pod, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("static pods: %w", err)
	}
	var out []*v1.Pod
	var failed error
	seen := map[string]string{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		pod, err := readFile(path, node)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("static pod %s: %w", path, err))
			continue
		}
		if pod == nil {
			continue
		}
		key := pod.Namespace + "/" + pod.Name
		if other := seen[key]; other != "" {
			failed = errors.Join(failed, fmt.Errorf("static pod %s: %s has a pod %s already", path, other, key))
			continue
		}
		seen[key] = path
		out = append(out, pod)
	}
	return out, failed
}

// readFile reads one manifest; nil if the path is not that of a file.
func readFile(path, node string) (*v1.Pod, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	if info.Size() > maxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes is too large: the most are %d", info.Size(), maxManifest)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(data, path, node)
}

// Parse makes the pod of a manifest that was found at source, for the node of that name.
func Parse(data []byte, source, node string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	if err := yaml.UnmarshalStrict(data, pod); err != nil {
		return nil, err
	}
	if pod.Kind != "Pod" || pod.APIVersion != "v1" {
		return nil, fmt.Errorf("it is of the kind %q of %q, not a Pod of v1", pod.Kind, pod.APIVersion)
	}
	if pod.Name == "" || len(pod.Spec.Containers) == 0 {
		return nil, errors.New("metadata.name and spec.containers must be set")
	}
	if err := check(pod); err != nil {
		return nil, err
	}
	identify(pod, data, source, node)
	setDefaults(pod)
	return pod, nil
}

// check refuses what only the API could give.
func check(pod *v1.Pod) error {
	if pod.Spec.ServiceAccountName != "" {
		return errors.New("spec.serviceAccountName: static pods have no service account")
	}
	if len(pod.Spec.EphemeralContainers) > 0 {
		return errors.New("spec.ephemeralContainers: static pods begin without any")
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.ConfigMap != nil || v.Secret != nil || v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.Projected != nil {
			return fmt.Errorf("spec.volumes[%d] (%s): static pods cannot refer to other objects of the API", i, v.Name)
		}
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if err := checkEnv(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEnv(c *v1.Container) error {
	if len(c.EnvFrom) > 0 {
		return fmt.Errorf("envFrom of container %s: static pods cannot refer to other objects of the API", c.Name)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && (e.ValueFrom.ConfigMapKeyRef != nil || e.ValueFrom.SecretKeyRef != nil) {
			return fmt.Errorf("variable %s of container %s: static pods cannot refer to other objects of the API", e.Name, c.Name)
		}
	}
	return nil
}

// identify gives the pod its name on this node, and a UID that changes with the manifest: a changed one is another pod.
func identify(pod *v1.Pod, data []byte, source, node string) {
	if pod.UID == "" {
		sum := md5.New()
		fmt.Fprintf(sum, "host:%s\nfile:%s\n", node, source)
		sum.Write(data)
		pod.UID = types.UID(hex.EncodeToString(sum.Sum(nil)))
	}
	pod.Name += "-" + strings.ToLower(node)
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	pod.Spec.NodeName = node
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationSource] = "file"
	pod.Annotations[annotationHash] = string(pod.UID)
	pod.Status = v1.PodStatus{Phase: v1.PodPending}
	// Such a pod is not to be evicted by taints, for nobody would run it elsewhere.
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoExecute})
}
