// Package noderestriction is the admission plugin NodeRestriction: it looks at what nodes write and refuses what is not theirs. The node authorizer decides by names alone; here the
// objects are known.
//
// A node writes its own Node (not its taints, and only labels that say what a machine is), its Lease and CSINode, the status of pods that are bound to it, mirror pods that refer to nothing, and asks for
// tokens and certificates of its pods only. What is not written by a node passes.
package noderestriction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/bayplan/bayplan/internal/apiserver/authorization/node"
)

// Name is the plugin's name in Kubernetes.
const Name = "NodeRestriction"

// Plugin implements admission.MutationInterface, and changes nothing. It must see what a node sent, before other plugins change it.
type Plugin struct {
	*admission.Handler
	client kubernetes.Interface
	pods   corelisters.PodLister
	// authorizer is there when requests come.
	authorizer func() authorizer.UnconditionalAuthorizer
}

// New returns the plugin. Pods are looked up in the factory's informer, and when it does not know them yet in the API.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, authorizer func() authorizer.UnconditionalAuthorizer) *Plugin {
	return &Plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete),
		client:  client, pods: factory.Core().V1().Pods().Lister(), authorizer: authorizer,
	}
}

// write is one write of a node.
type write struct {
	*Plugin
	admission.Attributes
	node string
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	u := a.GetUserInfo()
	if u == nil {
		return nil
	}
	name := node.Name(u)
	if name == "" {
		return nil
	}
	w := write{Plugin: p, Attributes: a, node: name}
	switch a.GetResource().GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		return w.pod(ctx)
	case schema.GroupResource{Resource: "nodes"}:
		return w.nodeObject()
	case schema.GroupResource{Resource: "persistentvolumeclaims"}:
		return w.claim()
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return w.token(ctx)
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}:
		return w.podCertificateRequest(ctx)
	case schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}:
		return w.signingRequest()
	case schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}:
		return w.lease()
	case schema.GroupResource{Group: "storage.k8s.io", Resource: "csinodes"}:
		return w.csiNode()
	case schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceslices"}:
		return w.resourceSlice()
	}
	return nil
}

// refuse is the answer to what a node may not write.
func (w write) refuse(format string, args ...any) error {
	return admission.NewForbidden(w, fmt.Errorf(format, args...))
}

func (w write) unexpected() error {
	return w.refuse("unexpected operation %q", w.GetOperation())
}

// objectName is the name of the object; that of one that is created stands in the object alone.
func (w write) objectName() string {
	if w.GetOperation() != admission.Create {
		return w.GetName()
	}
	object, err := meta.Accessor(w.GetObject())
	if err != nil {
		return ""
	}
	return object.GetName()
}

// current returns the stored pod; one that the informer does not know is asked for.
func (w write) current(ctx context.Context, name string) (*corev1.Pod, error) {
	pod, err := w.pods.Pods(w.GetNamespace()).Get(name)
	if apierrors.IsNotFound(err) {
		pod, err = w.client.CoreV1().Pods(w.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	}
	return pod, w.lookedUp(err)
}

// uid of the node's own object.
func (w write) uid(ctx context.Context) (types.UID, error) {
	n, err := w.client.CoreV1().Nodes().Get(ctx, w.node, metav1.GetOptions{})
	if err != nil {
		return "", w.lookedUp(err)
	}
	return n.UID, nil
}

// lookedUp is the error of a look-up: that something is not there is told as it is.
func (w write) lookedUp(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return admission.NewForbidden(w, err)
}

var _ admission.MutationInterface = &Plugin{}
