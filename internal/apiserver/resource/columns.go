package resource

import (
	"context"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Column is one column of `kubectl get`.
type Column[T Object] struct {
	Name, Description string
	// Type and Format as in OpenAPI: "string" unless set, "integer", "date" ...
	Type, Format string
	// Wide columns are shown with `-o wide` only.
	Wide  bool
	Value func(T) any
}

// Age is the column that nearly every kind ends with.
func Age[T Object]() Column[T] {
	return Column[T]{
		Name: "Age", Description: "Time since the object was created.",
		Value: func(obj T) any { return Since(obj.GetCreationTimestamp()) },
	}
}

// Since writes the time since then as kubectl does: "5s", "3d4h", or "<unknown>".
func Since(then metav1.Time) string {
	if then.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(then.Time))
}

// None stands for a value that is not there.
const None = "<none>"

// OrNone writes None for an empty text.
func OrNone(text string) string {
	if text == "" {
		return None
	}
	return text
}

// ConvertToTable implements rest.TableConvertor.
func (k *Kind[T]) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = k.columnDefinitions()
	}
	if !meta.IsListType(obj) {
		table.Rows = append(table.Rows, k.row(obj.(T)))
		m, err := meta.CommonAccessor(obj)
		if err == nil {
			table.ResourceVersion = m.GetResourceVersion()
		}
		return table, nil
	}
	list, err := meta.ListAccessor(obj)
	if err != nil {
		return nil, err
	}
	table.ResourceVersion, table.Continue = list.GetResourceVersion(), list.GetContinue()
	table.RemainingItemCount = list.GetRemainingItemCount()
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		table.Rows = append(table.Rows, k.row(item.(T)))
		return nil
	})
	return table, err
}

func (k *Kind[T]) columnDefinitions() []metav1.TableColumnDefinition {
	var definitions []metav1.TableColumnDefinition
	if !k.HideName {
		definitions = append(definitions, metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: "Name of the object, unique within its namespace and kind."})
	}
	for _, c := range k.Columns {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: c.Description}
		if d.Type == "" {
			d.Type = "string"
		}
		if c.Wide {
			d.Priority = 1
		}
		definitions = append(definitions, d)
	}
	return definitions
}

func (k *Kind[T]) row(obj T) metav1.TableRow {
	cells := make([]any, 0, len(k.Columns)+1)
	if !k.HideName {
		cells = append(cells, k.nameText(obj))
	}
	for _, c := range k.Columns {
		cells = append(cells, c.Value(obj))
	}
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: obj}}
}

func (k *Kind[T]) nameText(obj T) string {
	if k.NameText != nil {
		return k.NameText(obj)
	}
	return obj.GetName()
}

// Decimal writes a number as field selectors spell it.
func Decimal(n int32) string { return strconv.Itoa(int(n)) }
