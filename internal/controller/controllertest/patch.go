package controllertest

import (
	"encoding/json"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

func (a *API) patch(r *Request, current *object, contentType string, body []byte) (*object, error) {
	before, err := json.Marshal(current.Object)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch types.PatchType(contentType) {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	case types.StrategicMergePatchType:
		after, err = strategic(r, before, body)
	case types.JSONPatchType:
		var patch jsonpatch.Patch
		if patch, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = patch.Apply(before)
		}
	default:
		return nil, apierrors.NewBadRequest("no such patch: " + contentType)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	wanted, err := decode(after)
	if err != nil {
		return nil, err
	}
	return a.replace(r, current, wanted)
}

// strategic merges by the struct tags of the resource's Go type.
func strategic(r *Request, before, patch []byte) ([]byte, error) {
	typed, err := scheme.Scheme.New(r.Resource.GVK())
	if err != nil {
		return nil, err
	}
	return strategicpatch.StrategicMergePatch(before, patch, typed)
}
