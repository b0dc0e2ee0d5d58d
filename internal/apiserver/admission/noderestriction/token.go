package noderestriction

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// token: a node asks for tokens that are bound to pods that run on it, for audiences that the pod speaks of.
func (w write) token(ctx context.Context) error {
	if w.GetOperation() != admission.Create || w.GetSubresource() != "token" {
		return nil
	}
	request, ok := w.GetObject().(*authenticationv1.TokenRequest)
	if !ok {
		return w.refuse("unexpected type %T", w.GetObject())
	}
	ref := request.Spec.BoundObjectRef
	switch {
	case ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "":
		return w.refuse("node requested token not bound to a pod")
	case ref.UID == "":
		return w.refuse("node requested token with a pod binding without a uid")
	}
	pod, err := w.current(ctx, ref.Name)
	switch {
	case err != nil:
		return err
	case ref.UID != pod.UID:
		return w.refuse("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID)
	case pod.Spec.NodeName != w.node:
		return w.refuse("node requested token bound to a pod scheduled on a different node")
	}
	if err := w.audience(ctx, request, pod); err != nil {
		return admission.NewForbidden(w, err)
	}
	return nil
}

func (w write) audience(ctx context.Context, request *authenticationv1.TokenRequest, pod *corev1.Pod) error {
	if len(request.Spec.Audiences) > 1 {
		return errors.New("node may only request 0 or 1 audiences")
	}
	audience := ""
	if len(request.Spec.Audiences) == 1 {
		audience = request.Spec.Audiences[0]
	}
	found, err := w.speaksOf(ctx, pod, audience)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %w", audience, err)
	}
	if found {
		return nil
	}
	user := w.GetUserInfo().GetName()
	switch decision, _, err := w.authorizer().Authorize(ctx, w.question("request-serviceaccounts-token-audience", audience, w.GetName())); {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return fmt.Errorf("error authorizing %s to request tokens for audience %q: %w", user, audience, err)
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", user, audience)
}

// question is what an authorizer is asked about something that no object stands for.
func (w write) question(verb, resource, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: w.GetUserInfo(), Verb: verb, APIGroup: w.GetResource().Group, APIVersion: w.GetResource().Version,
		Resource: resource, Namespace: w.GetNamespace(), Name: name, ResourceRequest: true,
	}
}

// speaksOf reports whether a volume of the pod wants a token for the audience, itself or through its CSI driver.
func (w write) speaksOf(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				if s.ServiceAccountToken != nil && s.ServiceAccountToken.Audience == audience {
					return true, nil
				}
			}
		}
		driver, err := w.driver(ctx, pod, v)
		if err == nil && driver != "" {
			var ok bool
			if ok, err = w.driverSpeaksOf(ctx, driver, audience); ok {
				return true, nil
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, errors.Join(errs...)
}

// driver is the CSI driver of a volume, "" when it has none.
func (w write) driver(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (string, error) {
	var claim string
	switch {
	case v.CSI != nil:
		return v.CSI.Driver, nil
	case v.PersistentVolumeClaim != nil:
		claim = v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		claim = pod.Name + "-" + v.Name
	default:
		return "", nil
	}
	c, err := w.client.CoreV1().PersistentVolumeClaims(pod.Namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	volume, err := w.client.CoreV1().PersistentVolumes().Get(ctx, c.Spec.VolumeName, metav1.GetOptions{})
	if err != nil || volume.Spec.CSI == nil {
		return "", err
	}
	return volume.Spec.CSI.Driver, nil
}

func (w write) driverSpeaksOf(ctx context.Context, name, audience string) (bool, error) {
	driver, err := w.client.StorageV1().CSIDrivers().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, r := range driver.Spec.TokenRequests {
		if r.Audience == audience {
			return true, nil
		}
	}
	return false, nil
}
