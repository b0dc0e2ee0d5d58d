package node

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// sources gives pods the objects that they refer to: read when they are needed, so that a node never watches what it doesn't use.
type sources struct {
	client kubernetes.Interface
}

func (s *sources) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return s.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
}

func (s *sources) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return s.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
}

// Services reads from the server's watch cache. A server without services has none.
func (s *sources) Services(ctx context.Context, namespace string) ([]*v1.Service, error) {
	list, err := s.client.CoreV1().Services(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]*v1.Service, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
