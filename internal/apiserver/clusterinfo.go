package apiserver

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/bayplan/bayplan/internal/bootstraptoken"
)

// ensureClusterInfo says to machines that join where the cluster is and whom to trust: a kubeconfig without a user. A controller signs it with the bootstrap tokens.
func (s *Server) ensureClusterInfo(ctx context.Context) error {
	config := clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: "https://" + s.advertise, CertificateAuthorityData: s.authority.CertPEM()},
	}}
	text, err := clientcmd.Write(config)
	if err != nil {
		return err
	}
	client := s.client.CoreV1().ConfigMaps(metav1.NamespacePublic)
	found, err := ensure(ctx, client, bootstraptoken.ClusterInfo, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: bootstraptoken.ClusterInfo}, Data: map[string]string{bootstraptoken.KubeconfigKey: string(text)},
	})
	if err == nil && found.Data[bootstraptoken.KubeconfigKey] != string(text) {
		if found.Data == nil {
			found.Data = map[string]string{}
		}
		found.Data[bootstraptoken.KubeconfigKey] = string(text)
		_, err = client.Update(ctx, found, metav1.UpdateOptions{})
	}
	// Of servers on one store any address leads to the cluster.
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("config map %s: %w", bootstraptoken.ClusterInfo, err)
	}
	return nil
}
