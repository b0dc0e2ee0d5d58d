package translate

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bayplan/bayplan/internal/node/lifecycle"
)

// Labels and annotations by which the agent finds its pods in the runtime again. They are those that crictl and others know.
const (
	LabelPodName       = "io.kubernetes.pod.name"
	LabelPodNamespace  = "io.kubernetes.pod.namespace"
	LabelPodUID        = "io.kubernetes.pod.uid"
	LabelContainerName = "io.kubernetes.container.name"

	annotationHash               = "io.kubernetes.container.hash"
	annotationRestartCount       = "io.kubernetes.container.restartCount"
	annotationTerminationPath    = "io.kubernetes.container.terminationMessagePath"
	annotationTerminationPolicy  = "io.kubernetes.container.terminationMessagePolicy"
	annotationTerminationFile    = "bayplan.dev/termination-message-file"
	annotationPodGrace           = "io.kubernetes.pod.terminationGracePeriod"
	annotationPodDeletionSeconds = "io.kubernetes.pod.deletionGracePeriod"
)

func podLabels(pod *v1.Pod) map[string]string {
	labels := make(map[string]string, len(pod.Labels)+3)
	for k, v := range pod.Labels {
		labels[k] = v
	}
	labels[LabelPodName], labels[LabelPodNamespace], labels[LabelPodUID] = pod.Name, pod.Namespace, string(pod.UID)
	return labels
}

func containerLabels(pod *v1.Pod, c *v1.Container) map[string]string {
	return map[string]string{
		LabelPodName: pod.Name, LabelPodNamespace: pod.Namespace, LabelPodUID: string(pod.UID), LabelContainerName: c.Name,
	}
}

func containerAnnotations(pod *v1.Pod, c *v1.Container, attempt int32, terminationFile string) map[string]string {
	a := map[string]string{
		annotationHash:              lifecycle.SpecHash(c),
		annotationRestartCount:      strconv.Itoa(int(attempt)),
		annotationTerminationPath:   c.TerminationMessagePath,
		annotationTerminationPolicy: string(c.TerminationMessagePolicy),
		annotationTerminationFile:   terminationFile,
	}
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		a[annotationPodGrace] = strconv.FormatInt(*s, 10)
	}
	if s := pod.DeletionGracePeriodSeconds; s != nil {
		a[annotationPodDeletionSeconds] = strconv.FormatInt(*s, 10)
	}
	return a
}

// Meta is what the labels and annotations of a container tell about it.
type Meta struct {
	PodName, PodNamespace string
	PodUID                types.UID
	Container             string
	Hash                  string
	TerminationFile       string
	TerminationPolicy     v1.TerminationMessagePolicy
	// Grace is the pod's termination grace period in seconds, 30 when it is not on record.
	Grace int64
}

// MetaOf reads them back.
func MetaOf(labels, annotations map[string]string) Meta {
	m := Meta{
		PodName: labels[LabelPodName], PodNamespace: labels[LabelPodNamespace], PodUID: types.UID(labels[LabelPodUID]),
		Container: labels[LabelContainerName], Hash: annotations[annotationHash],
		TerminationFile:   annotations[annotationTerminationFile],
		TerminationPolicy: v1.TerminationMessagePolicy(annotations[annotationTerminationPolicy]), Grace: 30,
	}
	if s, err := strconv.ParseInt(annotations[annotationPodGrace], 10, 64); err == nil {
		m.Grace = s
	}
	return m
}
