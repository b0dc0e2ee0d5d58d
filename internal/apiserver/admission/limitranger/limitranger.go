// Package limitranger is the admission plugin LimitRanger: what containers do not say of their requests and limits comes from the LimitRanges of the namespace, and what they
// or claims ask for has to be within them.
//
//	request ─► ranges (cache, or the API) ─► Admit: defaults.go ─► Validate: limits.go
//
// Resources of a running pod are checked again when they are resized.
package limitranger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "LimitRanger"

const (
	// believed is for how long what the API said of a namespace's ranges is taken for true while the cache has none of them.
	believed = 30 * time.Second
	// remembered is of how many namespaces that is kept.
	remembered = 10000
)

// Plugin admits pods and claims.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
	lister corelisters.LimitRangeLister
	clock  clock.PassiveClock
	// asked has what the API said, an answer, by namespace.
	asked *lru.Cache
}

type answer struct {
	ranges []*corev1.LimitRange
	until  time.Time
}

// New makes the plugin.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, clock clock.PassiveClock) *Plugin {
	ranges := factory.Core().V1().LimitRanges()
	p := &Plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update), client: client, lister: ranges.Lister(), clock: clock, asked: lru.New(remembered),
	}
	p.SetReadyFunc(ranges.Informer().HasSynced)
	return p
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := limitedPod(a)
	if !ok || isGoing(a) {
		return nil
	}
	ranges, err := p.ranges(ctx, a.GetNamespace())
	if err != nil {
		return target.Forbidden(a, err)
	}
	for _, r := range ranges {
		applyDefaults(r, pod)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, isPod := limitedPod(a)
	claim, isClaim := target.Of[*corev1.PersistentVolumeClaim](a, corev1.Resource("persistentvolumeclaims"))
	if !isPod && !isClaim || isGoing(a) {
		return nil
	}
	ranges, err := p.ranges(ctx, a.GetNamespace())
	if err != nil {
		return target.Forbidden(a, err)
	}
	for _, r := range ranges {
		if isPod {
			err = checkPod(r, pod)
		} else {
			err = checkClaim(r, claim)
		}
		if err != nil {
			return target.Forbidden(a, err)
		}
	}
	return nil
}

// limitedPod is the pod of a request that decides on its resources: its creation or its resizing.
func limitedPod(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetOperation() == admission.Update {
		return target.OfSub[*corev1.Pod](a, corev1.Resource("pods"), "resize")
	}
	return target.Of[*corev1.Pod](a, corev1.Resource("pods"))
}

// isGoing tells whether the object is being deleted: then nothing must keep its finalizers from being removed.
func isGoing(a admission.Attributes) bool {
	old, err := meta.Accessor(a.GetOldObject())
	return err == nil && old.GetDeletionTimestamp() != nil
}

// ranges are those of the namespace, by name. When the cache has none, the API is asked, as a range may be a moment older than the object.
func (p *Plugin) ranges(ctx context.Context, namespace string) ([]*corev1.LimitRange, error) {
	ranges, err := p.lister.LimitRanges(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	if len(ranges) == 0 {
		ranges, err = p.ask(ctx, namespace)
	}
	slices.SortFunc(ranges, func(a, b *corev1.LimitRange) int { return strings.Compare(a.Name, b.Name) })
	return ranges, err
}

func (p *Plugin) ask(ctx context.Context, namespace string) ([]*corev1.LimitRange, error) {
	if known, ok := p.asked.Get(namespace); ok && p.clock.Now().Before(known.(answer).until) {
		return slices.Clone(known.(answer).ranges), nil
	}
	list, err := p.client.CoreV1().LimitRanges(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("limit ranges of the namespace could not be read: %w", err)
	}
	var ranges []*corev1.LimitRange
	for i := range list.Items {
		ranges = append(ranges, &list.Items[i])
	}
	p.asked.Add(namespace, answer{ranges, p.clock.Now().Add(believed)})
	return slices.Clone(ranges), nil
}
