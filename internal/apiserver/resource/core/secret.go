package core

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/bayplan/bayplan/internal/apiserver/resource"
)

func secret() *resource.Kind[*corev1.Secret] {
	return &resource.Kind[*corev1.Secret]{
		Resource: "secrets",
		New:      func() *corev1.Secret { return &corev1.Secret{} },
		NewList:  func() runtime.Object { return &corev1.SecretList{} },
		Default: func(s *corev1.Secret) {
			if s.Type == "" {
				s.Type = corev1.SecretTypeOpaque
			}
			foldStringData(s)
		},
		Validate:       validateSecret,
		ValidateUpdate: validateSecretUpdate,
		Fields:         map[string]func(*corev1.Secret) string{"type": func(s *corev1.Secret) string { return string(s.Type) }},
		Columns: []resource.Column[*corev1.Secret]{
			{Name: "Type", Description: "What the secret is used for.", Value: func(s *corev1.Secret) any { return string(s.Type) }},
			{Name: "Data", Type: "integer", Description: "Number of entries.", Value: func(s *corev1.Secret) any { return int64(len(s.Data)) }},
			resource.Age[*corev1.Secret](),
		},
	}
}

// foldStringData moves the write-only stringData into data.
func foldStringData(s *corev1.Secret) {
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}

func validateSecret(s *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	size := 0
	data := field.NewPath("data")
	for key, value := range s.Data {
		errs = append(errs, validateKey(key, data.Key(key))...)
		size += len(value)
	}
	if size > maxDataSize {
		errs = append(errs, field.TooLong(data, "", maxDataSize))
	}
	for _, key := range requiredKeys[s.Type] {
		if _, ok := s.Data[key]; !ok {
			errs = append(errs, field.Required(data.Key(key), ""))
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		errs = append(errs, validateJSON(s, corev1.DockerConfigKey)...)
	case corev1.SecretTypeDockerConfigJson:
		errs = append(errs, validateJSON(s, corev1.DockerConfigJsonKey)...)
	case corev1.SecretTypeBasicAuth:
		if len(s.Data[corev1.BasicAuthUsernameKey])+len(s.Data[corev1.BasicAuthPasswordKey]) == 0 {
			errs = append(errs, field.Required(data.Key(corev1.BasicAuthUsernameKey), ""), field.Required(data.Key(corev1.BasicAuthPasswordKey), ""))
		}
	}
	return errs
}

var requiredKeys = map[corev1.SecretType][]string{
	corev1.SecretTypeDockercfg:        {corev1.DockerConfigKey},
	corev1.SecretTypeDockerConfigJson: {corev1.DockerConfigJsonKey},
	corev1.SecretTypeSSHAuth:          {corev1.SSHAuthPrivateKey},
	corev1.SecretTypeTLS:              {corev1.TLSCertKey, corev1.TLSPrivateKeyKey},
}

// validateJSON never shows the value: it is a secret.
func validateJSON(s *corev1.Secret, key string) field.ErrorList {
	value, ok := s.Data[key]
	if !ok || json.Valid(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("data").Key(key), "<secret contents redacted>", "is not valid JSON")}
}

func validateSecretUpdate(obj, old *corev1.Secret) field.ErrorList {
	errs := validateSecret(obj)
	if obj.Type != old.Type {
		errs = append(errs, field.Invalid(field.NewPath("type"), obj.Type, "field is immutable"))
	}
	if old.Immutable == nil || !*old.Immutable {
		return errs
	}
	if obj.Immutable == nil || !*obj.Immutable {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	if !equalBytes(obj.Data, old.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
	}
	return errs
}
