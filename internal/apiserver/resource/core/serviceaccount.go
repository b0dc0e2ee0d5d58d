package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func serviceAccount() *resource.Kind[*corev1.ServiceAccount] {
	return &resource.Kind[*corev1.ServiceAccount]{
		Resource:   "serviceaccounts",
		ShortNames: []string{"sa"},
		New:        func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
		NewList:    func() runtime.Object { return &corev1.ServiceAccountList{} },
		Columns: []resource.Column[*corev1.ServiceAccount]{
			{Name: "Secrets", Type: "integer", Description: "Number of secrets that pods of this account may use.", Value: func(s *corev1.ServiceAccount) any { return int64(len(s.Secrets)) }},
			resource.Age[*corev1.ServiceAccount](),
		},
	}
}
