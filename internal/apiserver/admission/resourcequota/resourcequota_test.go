package resourcequota

import (
	"testing"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver/admission/admissiontest"
)

func TestTranscripts(t *testing.T) {
	admissiontest.Run(t, func(client kubernetes.Interface, factory informers.SharedInformerFactory) admission.Interface {
		p, err := New(client, factory, clock.RealClock{}, t.Context().Done())
		if err != nil {
			t.Fatal(err)
		}
		return p
	})
}
