// Package classes finds the class of a kind that objects get when they name none.
package classes

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Default returns the class that one of the annotations marks as the default. Of several the newest is it, and of equally new ones the first by name.
func Default[T metav1.Object](all []T, annotations ...string) (T, bool) {
	var found T
	any := false
	for _, class := range all {
		if marked(class, annotations) && (!any || before(class, found)) {
			found, any = class, true
		}
	}
	return found, any
}

func marked(class metav1.Object, annotations []string) bool {
	for _, name := range annotations {
		if class.GetAnnotations()[name] == "true" {
			return true
		}
	}
	return false
}

func before(a, b metav1.Object) bool {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if x.Equal(&y) {
		return a.GetName() < b.GetName()
	}
	return y.Before(&x)
}
