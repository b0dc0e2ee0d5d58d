package extendedresources

import (
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/bayplan/bayplan/internal/apiserver/admission/admissiontest"
)

func TestTranscripts(t *testing.T) {
	admissiontest.Run(t, func(_ kubernetes.Interface, _ informers.SharedInformerFactory) admission.Interface { return New() })
}
