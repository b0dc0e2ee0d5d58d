package controllertest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func deleteOptions(body []byte) (metav1.DeleteOptions, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return options, apierrors.NewBadRequest(err.Error())
		}
	}
	return options, nil
}

// delete deletes an object in the way that the options ask for.
func (a *API) delete(r Resource, current *object, body []byte) error {
	options, err := deleteOptions(body)
	if err != nil {
		return err
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && *p.UID != current.GetUID() {
			return apierrors.NewConflict(r.GroupResource(), current.GetName(), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, current.GetUID()))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != current.GetResourceVersion() {
			return apierrors.NewConflict(r.GroupResource(), current.GetName(), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)", *p.ResourceVersion, current.GetResourceVersion()))
		}
	}
	next := current.DeepCopy()
	next.SetFinalizers(finalizersFor(current.GetFinalizers(), options.PropagationPolicy))
	grace := gracePeriod(r, current, options)
	if old := current.GetDeletionGracePeriodSeconds(); old != nil {
		grace = min(grace, *old)
	}
	if current.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
		next.SetDeletionTimestamp(&now)
		next.SetGeneration(current.GetGeneration() + 1)
	}
	next.SetDeletionGracePeriodSeconds(&grace)
	if r.Resource == "namespaces" {
		_ = unstructured.SetNestedField(next.Object, "Terminating", "status", "phase")
	}
	if released(r, next) || !reflect.DeepEqual(next.Object, current.Object) {
		a.put(r, next)
	}
	return nil
}

func finalizersFor(finalizers []string, policy *metav1.DeletionPropagation) []string {
	own := []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents}
	if policy == nil {
		return finalizers
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return slices.Contains(own, f) })
	switch *policy {
	case metav1.DeletePropagationForeground:
		return append(kept, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		return append(kept, metav1.FinalizerOrphanDependents)
	}
	return kept
}

// gracePeriod is how long an object may take to end: only pods that were given to a node and have not finished take time.
func gracePeriod(r Resource, o *object, options metav1.DeleteOptions) int64 {
	if r.Resource != "pods" {
		return 0
	}
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if options.GracePeriodSeconds != nil {
		return *options.GracePeriodSeconds
	}
	if seconds, found, _ := unstructured.NestedInt64(o.Object, "spec", "terminationGracePeriodSeconds"); found {
		return seconds
	}
	return 30
}

func (a *API) deleteCollection(r *Request, v view, body []byte) error {
	for _, o := range a.table(r.Resource.GroupVersionResource).list(r.Namespace) {
		if !v.matches(o) {
			continue
		}
		if err := a.delete(r.Resource, o, body); err != nil {
			return err
		}
	}
	return nil
}
