package controllertest

import (
	"fmt"
	"net/http"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// handle carries out a request other than a watch.
func (a *API) handle(req *http.Request, r *Request, body []byte) (any, int, error) {
	t := a.table(r.Resource.GroupVersionResource)
	v := newView(req, r.Resource, r.Namespace)
	switch r.Verb {
	case "list":
		return v.list(r.Resource, t.list(r.Namespace), a.versionString()), http.StatusOK, nil
	case "create":
		o, err := a.create(r, body)
		return shown(v, o), http.StatusCreated, err
	case "deletecollection":
		return metav1.Status{Status: metav1.StatusSuccess}, http.StatusOK, a.deleteCollection(r, v, body)
	}
	current := t.get(r.Namespace, r.Name)
	if current == nil {
		return nil, 0, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	switch r.Verb {
	case "get":
		return v.show(current), http.StatusOK, nil
	case "update":
		o, err := a.update(r, current, body)
		return shown(v, o), http.StatusOK, err
	case "patch":
		o, err := a.patch(r, current, req.Header.Get("Content-Type"), body)
		return shown(v, o), http.StatusOK, err
	case "delete":
		return metav1.Status{Status: metav1.StatusSuccess}, http.StatusOK, a.delete(r.Resource, current, body)
	}
	return nil, 0, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)
}

func shown(v view, o *object) any {
	if o == nil {
		return nil
	}
	return v.show(o)
}

func decode(body []byte) (*object, error) {
	o := &object{}
	if err := json.Unmarshal(body, &o.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return o, nil
}

func (a *API) create(r *Request, body []byte) (*object, error) {
	if r.Sub != "" {
		return a.createSub(r, body)
	}
	o, err := decode(body)
	if err != nil {
		return nil, err
	}
	if r.Resource.Resource == reviews {
		return a.review(o)
	}
	if r.Resource.Namespaced {
		if err := a.mayCreateIn(r); err != nil {
			return nil, err
		}
		o.SetNamespace(r.Namespace)
	}
	if o.GetName() != "" && a.table(r.Resource.GroupVersionResource).get(r.Namespace, o.GetName()) != nil {
		return nil, apierrors.NewAlreadyExists(r.Resource.GroupResource(), o.GetName())
	}
	a.stamp(r.Resource, o, r.Agent)
	r.Name = o.GetName()
	a.put(r.Resource, o)
	return o, nil
}

// mayCreateIn refuses new content in namespaces that are not there or are being deleted.
func (a *API) mayCreateIn(r *Request) error {
	for _, ns := range a.tables[namespacesGVR].list("") {
		if ns.GetName() != r.Namespace {
			continue
		}
		if ns.GetDeletionTimestamp() == nil {
			return nil
		}
		err := apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating"})
		return err
	}
	return apierrors.NewNotFound(namespacesGVR.GroupResource(), r.Namespace)
}

var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// update replaces an object, or the part of it that the sub-resource stands for.
func (a *API) update(r *Request, current *object, body []byte) (*object, error) {
	wanted, err := decode(body)
	if err != nil {
		return nil, err
	}
	return a.replace(r, current, wanted)
}

func (a *API) replace(r *Request, current, wanted *object) (*object, error) {
	if v := wanted.GetResourceVersion(); v != "" && v != current.GetResourceVersion() {
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if uid := wanted.GetUID(); uid != "" && uid != current.GetUID() {
		return nil, apierrors.NewConflict(r.Resource.GroupResource(), r.Name, fmt.Errorf("precondition failed: UID in precondition: %v, UID in object meta: %v", uid, current.GetUID()))
	}
	next := wanted.DeepCopy()
	switch r.Sub {
	case "status", "approval":
		next = current.DeepCopy()
		setPart(next, wanted, "status")
		next.SetAnnotations(wanted.GetAnnotations())
	case "finalize":
		next = current.DeepCopy()
		finalizers, _, _ := unstructured.NestedStringSlice(wanted.Object, "spec", "finalizers")
		_ = unstructured.SetNestedStringSlice(next.Object, finalizers, "spec", "finalizers")
	default:
		setPart(next, current, "status")
	}
	keepIdentity(next, current)
	if !reflect.DeepEqual(next.Object["spec"], current.Object["spec"]) {
		next.SetGeneration(current.GetGeneration() + 1)
	}
	next.SetResourceVersion(current.GetResourceVersion())
	if reflect.DeepEqual(next.Object, current.Object) {
		return current, nil
	}
	a.put(r.Resource, next)
	return next, nil
}

func setPart(to, from *object, part string) {
	if value, found := from.Object[part]; found {
		to.Object[part] = value
	} else {
		delete(to.Object, part)
	}
}

func keepIdentity(next, current *object) {
	next.SetGroupVersionKind(current.GroupVersionKind())
	next.SetNamespace(current.GetNamespace())
	next.SetName(current.GetName())
	next.SetUID(current.GetUID())
	next.SetCreationTimestamp(current.GetCreationTimestamp())
	next.SetDeletionTimestamp(current.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(current.GetDeletionGracePeriodSeconds())
	next.SetGeneration(current.GetGeneration())
	next.SetManagedFields(nil)
}

// createSub carries out the sub-resources that are posted to: binding and eviction of pods, tokens of service accounts.
func (a *API) createSub(r *Request, body []byte) (*object, error) {
	current := a.table(r.Resource.GroupVersionResource).get(r.Namespace, r.Name)
	if current == nil {
		return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
	}
	posted, err := decode(body)
	if err != nil {
		return nil, err
	}
	switch r.Sub {
	case "binding":
		next := current.DeepCopy()
		node, _, _ := unstructured.NestedString(posted.Object, "target", "name")
		_ = unstructured.SetNestedField(next.Object, node, "spec", "nodeName")
		a.put(r.Resource, next)
		return next, nil
	case "token":
		secret, _, _ := unstructured.NestedString(posted.Object, "spec", "boundObjectRef", "name")
		posted.Object["status"] = map[string]any{"token": "of " + r.Name + " for " + secret, "expirationTimestamp": nil}
		return posted, nil
	case "eviction":
		return current, a.delete(r.Resource, current, nil)
	}
	return nil, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Sub)
}
