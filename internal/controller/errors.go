package controller

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsTransient tells errors that only say that the controller's picture was old: the next sync reads the new one.
func IsTransient(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// IgnoreNotFound drops the error which says that the object is already gone.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// IgnoreAlreadyExists drops the error which says that somebody else has made the object.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// IsNamespaceTerminating tells that an object could not be made because its namespace is being deleted: trying again is of no
// use, the owner will be deleted too.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// errAgain marks errors made by Again.
var errAgain = errors.New("to be looked at again")

// Again is what a sync returns to be called again with a growing delay although nothing is wrong.
func Again(why string) error { return fmt.Errorf("%s: %w", why, errAgain) }

// IsAgain recognises what Again made.
func IsAgain(err error) bool { return errors.Is(err, errAgain) }
