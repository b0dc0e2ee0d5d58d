package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/client-go/informers"
)

// immortal namespaces cannot be deleted.
var immortal = sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease)

// admission puts the admission plugins in order.
func (s *Server) admission(factory informers.SharedInformerFactory) (admission.Interface, error) {
	namespaces, err := lifecycle.NewLifecycle(immortal)
	if err != nil {
		return nil, err
	}
	namespaces.SetExternalKubeClientSet(s.client)
	namespaces.SetExternalKubeInformerFactory(factory)
	if err := namespaces.ValidateInitialization(); err != nil {
		return nil, err
	}
	return admissionmetrics.WithStepMetrics(admission.NewChainHandler(namespaces)), nil
}
