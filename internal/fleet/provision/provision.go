// Package provision adds simulated nodes to a running cluster and takes them away, as its client:
//
//	Add: Nodes are created ─► the fleet in the cluster takes them over ─► all are Ready
//	Delete: Nodes are deleted ─► their pods are collected by the cluster's controllers
package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"golang.org/x/sync/errgroup"

	"github.com/bayplan/bayplan/api/v1alpha1"
	"github.com/bayplan/bayplan/internal/fleet/manifest"
)

// writers is how many requests are under way at once.
const writers = 16

// Add makes as many further nodes of the group as its count says, and returns their names when all are Ready, or when ctx ends.
func Add(ctx context.Context, client kubernetes.Interface, group *v1alpha1.NodeGroup) ([]string, error) {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the nodes that are there: %w", err)
	}
	taken := map[string]bool{}
	for i := range list.Items {
		taken[list.Items[i].Name] = true
	}
	nodes, err := manifest.Next(group, taken)
	if err != nil {
		return nil, err
	}
	makers, making := errgroup.WithContext(ctx)
	makers.SetLimit(writers)
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
		makers.Go(func() error {
			_, err := client.CoreV1().Nodes().Create(making, n, metav1.CreateOptions{})
			return err
		})
	}
	if err := makers.Wait(); err != nil {
		return nil, err
	}
	return names, awaitReady(ctx, client, list.ResourceVersion, names)
}

// awaitReady watches the nodes until those are Ready.
func awaitReady(ctx context.Context, client kubernetes.Interface, version string, names []string) error {
	missing := map[string]bool{}
	for _, name := range names {
		missing[name] = true
	}
	if len(missing) == 0 {
		return nil
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.LabelSelector = v1alpha1.LabelSimulated + "=true"
		return client.CoreV1().Nodes().Watch(ctx, options)
	}}
	_, err := toolswatch.Until(ctx, version, watcher, func(event watch.Event) (bool, error) {
		if n, ok := event.Object.(*corev1.Node); ok && (event.Type == watch.Deleted || ready(n)) {
			delete(missing, n.Name)
		}
		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d nodes are not Ready, for instance %s; are they simulated by the cluster, which `bayplan up` does? (%w)", len(missing), len(names), firstOf(missing), err)
	}
	return nil
}

func firstOf(names map[string]bool) string {
	first := ""
	for name := range names {
		if first == "" || name < first {
			first = name
		}
	}
	return first
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Choice says which nodes to delete: those with the names, or of a group the youngest so many.
type Choice struct {
	Names []string
	Group string
	// Count is how many of the group; all when it is zero.
	Count int
}

// Delete deletes nodes and returns their names. A node that is not simulated is refused, and then none is deleted.
func Delete(ctx context.Context, client kubernetes.Interface, choice Choice) ([]string, error) {
	names, err := choose(ctx, client, choice)
	if err != nil {
		return nil, err
	}
	deleters, deleting := errgroup.WithContext(ctx)
	deleters.SetLimit(writers)
	for _, name := range names {
		deleters.Go(func() error {
			err := client.CoreV1().Nodes().Delete(deleting, name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
	}
	return names, deleters.Wait()
}

func choose(ctx context.Context, client kubernetes.Interface, choice Choice) ([]string, error) {
	if choice.Group == "" {
		var errs []error
		for _, name := range choice.Names {
			n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if err == nil && n.Labels[v1alpha1.LabelSimulated] != "true" {
				err = fmt.Errorf("node %q is not simulated; to take away a real one, use kubectl delete node", name)
			}
			errs = append(errs, err)
		}
		return choice.Names, errors.Join(errs...)
	}
	selector := fmt.Sprintf("%s=true,%s=%s", v1alpha1.LabelSimulated, v1alpha1.LabelNodeGroup, choice.Group)
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("there is no node of group %q (label %s)", choice.Group, v1alpha1.LabelNodeGroup)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), compareNames(b.Name, a.Name))
	})
	if choice.Count > 0 {
		list.Items = list.Items[:min(choice.Count, len(list.Items))]
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names, nil
}

// compareNames orders names so that n-10 comes after n-9.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}
