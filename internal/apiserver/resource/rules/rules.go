// Package rules holds the small checks of which the validation of every kind is put together. Each says what is wrong in the words that Kubernetes uses, at
// the path of the field.
package rules

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Invalid turns the messages of a check into errors about value.
func Invalid[T any](messages []string, path *field.Path, value T) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}

// NotNegative wants value to be 0 or more.
func NotNegative[T cmp.Ordered](value T, path *field.Path) field.ErrorList {
	if value < *new(T) {
		return field.ErrorList{field.Invalid(path, value, validation.IsNegativeErrorMsg).WithOrigin("minimum")}
	}
	return nil
}

// NotNegativePointer wants value to be 0 or more where it is given.
func NotNegativePointer[T cmp.Ordered](value *T, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	return NotNegative(*value, path)
}

// Positive wants value to be more than 0.
func Positive[T cmp.Ordered](value T, path *field.Path) field.ErrorList {
	if value <= *new(T) {
		return field.ErrorList{field.Invalid(path, value, "must be greater than 0")}
	}
	return nil
}

// OneOf checks an enumeration; an empty value is a missing one.
func OneOf[T ~string](value T, path *field.Path, allowed ...T) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(allowed, value):
		return field.ErrorList{field.NotSupported(path, value, allowed)}
	}
	return nil
}

// OneOfPointer checks an enumeration that may be absent.
func OneOfPointer[T ~string](value *T, path *field.Path, allowed ...T) field.ErrorList {
	if value == nil || slices.Contains(allowed, *value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, *value, allowed)}
}

// Required wants a text.
func Required[T ~string](value T, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// Unchanged wants a field that can never be changed to be as before.
func Unchanged(value, old any, path *field.Path) field.ErrorList {
	if equality.Semantic.DeepEqual(value, old) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, validation.FieldImmutableErrorMsg).WithOrigin("immutable")}
}

// Subdomain wants a DNS subdomain; an empty text is a missing one.
func Subdomain(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Invalid(utilvalidation.IsDNS1123Subdomain(value), path, value)
}

// Label wants a DNS label; an empty text is a missing one.
func Label(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Invalid(utilvalidation.IsDNS1123Label(value), path, value)
}

// Qualified wants a qualified name such as a label key.
func Qualified(value string, path *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return Invalid(utilvalidation.IsQualifiedName(value), path, value)
}

// Port wants a port number.
func Port(value int32, path *field.Path) field.ErrorList {
	return Invalid(utilvalidation.IsValidPortNum(int(value)), path, value)
}

// Selector checks a label selector that may be absent.
func Selector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(selector, metavalidation.LabelSelectorValidationOptions{}, path)
}

// Conditions checks the conditions of a status in the common form.
func Conditions(conditions []metav1.Condition, path *field.Path) field.ErrorList {
	return metavalidation.ValidateConditions(conditions, path)
}

// AtMost bounds the length of a list.
func AtMost[T any](list []T, most int, path *field.Path) field.ErrorList {
	if len(list) > most {
		return field.ErrorList{field.TooMany(path, len(list), most)}
	}
	return nil
}

// ExactlyOne wants one of several fields to be set, which the names list.
func ExactlyOne(path *field.Path, names []string, set ...bool) field.ErrorList {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	if n == 1 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "", fmt.Sprintf("must specify exactly one of: %v", names))}
}
