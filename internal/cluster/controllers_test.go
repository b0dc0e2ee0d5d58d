package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// world is a cluster with all controllers, on which several tests run.
type world struct {
	*testing.T
	ctx    context.Context
	client kubernetes.Interface
	admin  *rest.Config
}

// Controllers are tested one by one on an API in memory. Here they meet the real one, with what it refuses, fills in and allows them.
func TestControllersOnTheAPI(t *testing.T) {
	c, client := start(t, local(t))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, test := range map[string]func(*world){
		"volumes": (*world).volumes, "token": (*world).token, "migration": (*world).migration, "mirroring": (*world).mirroring, "node": (*world).node,
	} {
		t.Run(name, func(t *testing.T) { test(&world{t, ctx, client, c.Admin()}) })
	}
}

func must[T any](w *world, object T, err error) T {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return object
}

// until watches objects until one is as wanted.
func until[T any](w *world, list func(context.Context, metav1.ListOptions) (watch.Interface, error), what string, wanted func(watch.EventType, T) bool) T {
	w.Helper()
	events, err := list(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if object, ok := event.Object.(T); ok && wanted(event.Type, object) {
			return object
		}
	}
	w.Fatalf("waited in vain for %s", what)
	panic("unreachable")
}

func (w *world) volumes() {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volumes, claims := w.client.CoreV1().PersistentVolumes(), w.client.CoreV1().PersistentVolumeClaims("default")
	volume, err := volumes.Create(w.ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}},
		},
	}, metav1.CreateOptions{})
	must(w, volume, err)
	claim, err := claims.Create(w.ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(""), AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	must(w, claim, err)
	until(w, claims.Watch, "the claim to be bound and protected", func(_ watch.EventType, c *corev1.PersistentVolumeClaim) bool {
		return c.Status.Phase == corev1.ClaimBound && c.Spec.VolumeName == "disk" && slices.Contains(c.Finalizers, "kubernetes.io/pvc-protection")
	})
	if err := claims.Delete(w.ctx, "data", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	until(w, volumes.Watch, "the volume to be released", func(_ watch.EventType, v *corev1.PersistentVolume) bool {
		return v.Status.Phase == corev1.VolumeReleased
	})
}

func (w *world) token() {
	secrets := w.client.CoreV1().Secrets("default")
	account, err := w.client.CoreV1().ServiceAccounts("default").Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	must(w, account, err)
	secret, err := secrets.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	must(w, secret, err)
	secret = until(w, secrets.Watch, "the token", func(_ watch.EventType, s *corev1.Secret) bool { return s.Name == "robot" && len(s.Data["token"]) > 0 })
	config := rest.AnonymousClientConfig(w.admin)
	config.BearerToken = string(secret.Data["token"])
	_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Secrets("default").List(w.ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:serviceaccount:default:robot"`) {
		w.Errorf("the holder of the token is told %v, want to be refused as the account", err)
	}
}

func (w *world) migration() {
	migrations := w.client.StoragemigrationV1().StorageVersionMigrations()
	made, err := migrations.Create(w.ctx, &storagemigrationv1.StorageVersionMigration{
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps"}, Spec: storagemigrationv1.StorageVersionMigrationSpec{Resource: metav1.GroupResource{Resource: "configmaps"}},
	}, metav1.CreateOptions{})
	must(w, made, err)
	until(w, migrations.Watch, "the migration to end", func(_ watch.EventType, m *storagemigrationv1.StorageVersionMigration) bool {
		if failed := meta.FindStatusCondition(m.Status.Conditions, "Failed"); failed != nil {
			w.Fatal(failed.Message)
		}
		return meta.IsStatusConditionTrue(m.Status.Conditions, "Succeeded") && m.Status.ResourceVersion != ""
	})
}

func (w *world) mirroring() {
	service, err := w.client.CoreV1().Services("default").Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "outside"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(w, service, err)
	endpoints, err := w.client.CoreV1().Endpoints("default").Create(w.ctx, &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "outside"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}}, Ports: []corev1.EndpointPort{{Port: 8080}}}},
	}, metav1.CreateOptions{})
	must(w, endpoints, err)
	until(w, w.client.DiscoveryV1().EndpointSlices("default").Watch, "the slice", func(_ watch.EventType, s *discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelServiceName] == "outside" && len(s.Endpoints) == 1 && s.Endpoints[0].Addresses[0] == "192.0.2.1" && *s.Ports[0].Port == 8080
	})
}

func (w *world) node() {
	nodes := w.client.CoreV1().Nodes()
	node, err := nodes.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, metav1.CreateOptions{})
	must(w, node, err)
	until(w, nodes.Watch, "the annotation", func(_ watch.EventType, n *corev1.Node) bool {
		return n.Annotations[corev1.ObjectTTLAnnotationKey] == "0"
	})
}
