package classes

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDefault(t *testing.T) {
	class := func(name string, second int64, mark string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.Unix(second, 0), Annotations: map[string]string{"default": mark},
		}}
	}
	for name, test := range map[string]struct {
		classes []*storagev1.StorageClass
		want    string
	}{
		"none":           {nil, ""},
		"none is marked": {[]*storagev1.StorageClass{class("a", 1, "false"), class("b", 1, "")}, ""},
		"the marked one": {[]*storagev1.StorageClass{class("a", 9, ""), class("b", 1, "true"), class("c", 9, "")}, "b"},
		"the newest":     {[]*storagev1.StorageClass{class("a", 1, "true"), class("c", 3, "true"), class("b", 2, "true")}, "c"},
		"by name":        {[]*storagev1.StorageClass{class("b", 1, "true"), class("a", 1, "true"), class("c", 1, "true")}, "a"},
	} {
		got, ok := Default(test.classes, "other", "default")
		if ok != (test.want != "") || ok && got.Name != test.want {
			t.Errorf("%s: got %v, %v", name, got, ok)
		}
	}
}
