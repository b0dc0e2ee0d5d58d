// Package serviceaccount is the admission plugin ServiceAccount: every pod runs as a ServiceAccount of its namespace, "default" unless it names one. From it the pod gets its
// image pull secrets and, unless pod or account say no, a volume with a token, the cluster's root certificate and its namespace, which each container mounts.
//
//	pod ─► account (cache, API, or a short wait for "default", which a controller makes) ─► token.go ─► secrets.go, where the account limits its secrets
//
// A mirror pod stands for a pod that a node runs by itself: it has no account and is not changed.
package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/apiserver/admission/target"
)

// Name is the plugin's name.
const Name = "ServiceAccount"

const (
	// defaultAccount is the account of a pod that names none.
	defaultAccount = "default"
	// patience is how long a pod waits for the account "default", which follows its namespace by a moment.
	patience = time.Second
)

// Plugin admits pods.
type Plugin struct {
	*admission.Handler
	client   kubernetes.Interface
	accounts corelisters.ServiceAccountLister
	arrivals arrivals
	clock    clock.Clock
	names    names.NameGenerator
}

// New makes the plugin. Volumes are named by the generator.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, clock clock.Clock, names names.NameGenerator) (*Plugin, error) {
	accounts := factory.Core().V1().ServiceAccounts()
	p := &Plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update), client: client, accounts: accounts.Lister(), clock: clock, names: names,
	}
	p.SetReadyFunc(accounts.Informer().HasSynced)
	_, err := accounts.Informer().AddEventHandler(&p.arrivals)
	return p, err
}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods"))
	if !ok || a.GetOperation() != admission.Create || isMirror(pod) {
		return nil
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = defaultAccount
	}
	// The field's former name says the same.
	pod.Spec.DeprecatedServiceAccount = pod.Spec.ServiceAccountName //nolint:staticcheck // clients that know only this name
	account, err := p.account(ctx, a.GetNamespace(), pod.Spec.ServiceAccountName)
	if err != nil {
		return target.Forbidden(a, err)
	}
	if automounts(pod, account) {
		p.mountToken(&pod.Spec)
	}
	if len(pod.Spec.ImagePullSecrets) == 0 {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, account.ImagePullSecrets...)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetOperation() == admission.Update {
		pod, ok := target.OfSub[*corev1.Pod](a, corev1.Resource("pods"), "ephemeralcontainers")
		if !ok {
			return nil
		}
		return target.Forbidden(a, p.check(ctx, a, pod, limitEphemeralSecrets))
	}
	pod, ok := target.Of[*corev1.Pod](a, corev1.Resource("pods"))
	if !ok {
		return nil
	}
	if isMirror(pod) {
		return target.Forbidden(a, checkMirror(&pod.Spec))
	}
	return target.Forbidden(a, p.check(ctx, a, pod, limitSecrets))
}

// check holds a pod against its account, if that limits which secrets its pods may use.
func (p *Plugin) check(ctx context.Context, a admission.Attributes, pod *corev1.Pod, limit func(*corev1.ServiceAccount, *corev1.PodSpec) error) error {
	if pod.Spec.ServiceAccountName == "" {
		return fmt.Errorf("no service account specified for pod %s/%s", a.GetNamespace(), pod.Name)
	}
	account, err := p.account(ctx, a.GetNamespace(), pod.Spec.ServiceAccountName)
	if err != nil || !limitsSecrets(account) {
		return err
	}
	return limit(account, &pod.Spec)
}

func isMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return ok
}

// checkMirror: what a mirror pod refers to, its node would be allowed to read.
func checkMirror(pod *corev1.PodSpec) error {
	if pod.ServiceAccountName != "" {
		return errors.New("a mirror pod may not reference service accounts")
	}
	if usesSecrets(pod) {
		return errors.New("a mirror pod may not reference secrets")
	}
	for i := range pod.Volumes {
		if pod.Volumes[i].Projected == nil {
			continue
		}
		for _, source := range pod.Volumes[i].Projected.Sources {
			if source.ServiceAccountToken != nil {
				return errors.New("a mirror pod may not use ServiceAccountToken volume projections")
			}
		}
	}
	return nil
}

// account returns the account from the cache or, as that may be behind, from the API. For "default" it waits a little.
func (p *Plugin) account(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	timeout := p.clock.NewTimer(patience)
	defer timeout.Stop()
	for {
		// Asked for before the look, so that no arrival falls between look and wait.
		arrived := p.arrivals.next()
		account, err := p.accounts.ServiceAccounts(namespace).Get(name)
		if apierrors.IsNotFound(err) {
			account, err = p.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		}
		if err == nil {
			return account, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, lookupError(namespace, name, err)
		}
		err = lookupError(namespace, name, apierrors.NewNotFound(corev1.Resource("serviceaccount"), name))
		if name != defaultAccount {
			return nil, err
		}
		select {
		case <-arrived:
		case <-timeout.C():
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

func lookupError(namespace, name string, err error) error {
	return fmt.Errorf("error looking up service account %s/%s: %w", namespace, name, err)
}
