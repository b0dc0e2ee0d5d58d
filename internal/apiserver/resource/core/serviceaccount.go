package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

// serviceAccount also tells the tokens where accounts, and the pods, secrets and nodes that tokens are bound to, are found.
func serviceAccount(options Options, pods *resource.Kind[*corev1.Pod], secrets *resource.Kind[*corev1.Secret], nodes *resource.Kind[*corev1.Node]) *resource.Kind[*corev1.ServiceAccount] {
	return &resource.Kind[*corev1.ServiceAccount]{
		Resource:   "serviceaccounts",
		ShortNames: []string{"sa"},
		New:        func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
		NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },
		Columns: []resource.Column[*corev1.ServiceAccount]{
			{Name: "Secrets", Type: "integer", Description: "Number of secrets that pods of this account may use.", Value: func(s *corev1.ServiceAccount) any { return int64(len(s.Secrets)) }},
			resource.Age[*corev1.ServiceAccount](),
		},
		Extra: func(env resource.Environment, store *genericregistry.Store) (map[string]rest.Storage, error) {
			o := &objects{accounts: store}
			var err error
			if o.pods, err = pods.Store(env, corev1.SchemeGroupVersion); err != nil {
				return nil, err
			}
			if o.secrets, err = secrets.Store(env, corev1.SchemeGroupVersion); err != nil {
				return nil, err
			}
			if o.nodes, err = nodes.Store(env, corev1.SchemeGroupVersion); err != nil {
				return nil, err
			}
			options.Tokens.SetObjects(o)
			return map[string]rest.Storage{"token": &tokenStorage{tokens: options.Tokens, objects: o}}, nil
		},
	}
}
