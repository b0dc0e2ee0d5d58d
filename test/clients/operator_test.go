package clients

import (
	"context"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

var siteVersion = schema.GroupVersion{Group: "web.example.org", Version: "v1"}

// Site is served by as many pods as it has visitors.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              SiteSpec   `json:"spec"`
	Status            SiteStatus `json:"status,omitempty"`
}

// SiteSpec is what is asked for.
type SiteSpec struct {
	Visitors int32 `json:"visitors"`
}

// SiteStatus is what is there.
type SiteStatus struct {
	Ready              int32 `json:"ready"`
	ObservedGeneration int64 `json:"observedGeneration"`
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// SiteList is a list of sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Site))
	}
	return &out
}

const siteFinalizer = "web.example.org/farewell"

// siteReconciler keeps a Deployment for each site, and leaves a ConfigMap when a site goes.
type siteReconciler struct {
	client.Client
	recorder events.EventRecorder
}

func (r *siteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.farewell(ctx, site)
	}
	if controllerutil.AddFinalizer(site, siteFinalizer) {
		return ctrl.Result{}, r.Update(ctx, site)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	did, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error { return r.shape(deployment, site) })
	if err != nil {
		return ctrl.Result{}, err
	}
	if did != controllerutil.OperationResultNone {
		r.recorder.Eventf(site, deployment, corev1.EventTypeNormal, "Served", "Serve", "deployment %s", did)
	}
	status := SiteStatus{Ready: deployment.Status.ReadyReplicas, ObservedGeneration: site.Generation}
	if site.Status == status {
		return ctrl.Result{}, nil
	}
	site.Status = status
	return ctrl.Result{}, r.Status().Update(ctx, site)
}

func (r *siteReconciler) shape(deployment *appsv1.Deployment, site *Site) error {
	labels := map[string]string{"site": site.Name}
	deployment.Spec.Replicas = &site.Spec.Visitors
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	}
	return controllerutil.SetControllerReference(site, deployment, r.Scheme())
}

func (r *siteReconciler) farewell(ctx context.Context, site *Site) error {
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name + "-was-here"}}
	if err := r.Create(ctx, note); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	controllerutil.RemoveFinalizer(site, siteFinalizer)
	return client.IgnoreNotFound(r.Update(ctx, site))
}

func siteDefinition() *apiextensionsv1.CustomResourceDefinition {
	number := func(minimum float64) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64", Minimum: &minimum}
	}
	object := func(properties map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
	}
	root := object(map[string]apiextensionsv1.JSONSchemaProps{
		"spec":   object(map[string]apiextensionsv1.JSONSchemaProps{"visitors": number(0)}),
		"status": object(map[string]apiextensionsv1.JSONSchemaProps{"ready": number(0), "observedGeneration": number(0)}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "sites." + siteVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: siteVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "sites", Kind: "Site"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: siteVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
			}},
		},
	}
}

func operatorScheme(t *testing.T) *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, apiextensionsv1.AddToScheme(scheme))
	scheme.AddKnownTypes(siteVersion, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, siteVersion)
	return scheme
}

// runOperator runs the operator, once the kind of its objects is served.
func runOperator(ctx context.Context, t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	log.SetLogger(klog.Background())
	scheme := operatorScheme(t)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	must(t, err)
	must(t, direct.Create(ctx, siteDefinition()))
	eventually(ctx, t, "the kind is served", func(ctx context.Context) (bool, error) {
		err := direct.List(ctx, &SiteList{})
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	must(t, err)
	reconciler := &siteReconciler{Client: manager.GetClient(), recorder: manager.GetEventRecorder("sites")}
	must(t, ctrl.NewControllerManagedBy(manager).For(&Site{}).Owns(&appsv1.Deployment{}).Complete(reconciler))
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
	return direct
}

// TestOperator: an operator of controller-runtime, with its caches, follows its objects and what it owns.
func TestOperator(t *testing.T) {
	ctx := testContext(t)
	c := runOperator(ctx, t, startWithNode(ctx, t).Config())
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: SiteSpec{Visitors: 2}}
	must(t, c.Create(ctx, site))
	key := client.ObjectKeyFromObject(site)
	serves := func(ready int32) {
		t.Helper()
		eventually(ctx, t, "the site's status", func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, key, site)
			return site.Status.Ready == ready && site.Status.ObservedGeneration == site.Generation, err
		})
	}
	serves(2)
	site.Spec.Visitors = 3
	must(t, c.Update(ctx, site))
	serves(3)

	// What is owned and deleted comes back.
	deployment := &appsv1.Deployment{}
	must(t, c.Get(ctx, key, deployment))
	former := deployment.UID
	must(t, c.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	eventually(ctx, t, "a new Deployment", func(ctx context.Context) (bool, error) {
		err := client.IgnoreNotFound(c.Get(ctx, key, deployment))
		return err == nil && deployment.UID != former, err
	})
	serves(3)
	eventually(ctx, t, "the operator's events", func(ctx context.Context) (bool, error) {
		told := &corev1.EventList{}
		err := c.List(ctx, told, client.InNamespace("default"))
		return slices.ContainsFunc(told.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.UID == site.UID && e.Message == "deployment updated"
		}), err
	})

	bad := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad"}, Spec: SiteSpec{Visitors: -1}}
	if err := c.Create(ctx, bad); !apierrors.IsInvalid(err) {
		t.Errorf("a site against the schema: %v", err)
	}

	// The finalizer runs, and the garbage collector takes what was owned.
	must(t, c.Delete(ctx, site))
	eventually(ctx, t, "the site's end", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, site)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	must(t, c.Get(ctx, client.ObjectKey{Namespace: "default", Name: "shop-was-here"}, &corev1.ConfigMap{}))
	eventually(ctx, t, "the Deployment's end", func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, key, deployment)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
}
