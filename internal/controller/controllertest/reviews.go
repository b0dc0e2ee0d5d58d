package controllertest

import (
	"encoding/json"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reviews is the resource that is answered and not stored.
const reviews = "subjectaccessreviews"

// permission is something that a user may do with a resource, as in "certificatesigningrequests/nodeclient".
type permission struct{ user, verb, resource string }

// Allow makes SubjectAccessReviews answer that the user may do it. They say no to everything else.
func (a *API) Allow(user, verb, resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.allowed[permission{user, verb, resource}] = true
}

// review answers a SubjectAccessReview.
func (a *API) review(o *object) (*object, error) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	var asked authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(text, &asked); err != nil || asked.Spec.ResourceAttributes == nil {
		return nil, apierrors.NewBadRequest("a SubjectAccessReview with resourceAttributes is wanted")
	}
	resource := asked.Spec.ResourceAttributes.Resource
	if sub := asked.Spec.ResourceAttributes.Subresource; sub != "" {
		resource += "/" + sub
	}
	o.Object["status"] = map[string]any{"allowed": a.allowed[permission{asked.Spec.User, asked.Spec.ResourceAttributes.Verb, resource}]}
	return o, nil
}
