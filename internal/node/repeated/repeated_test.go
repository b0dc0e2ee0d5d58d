package repeated

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

func TestRepetitionsAreNotTold(t *testing.T) {
	var out bytes.Buffer
	ctx := klog.NewContext(context.Background(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out))))
	var l Log
	const what, other = "Cannot do it", "Cannot do that"
	told := func(want int) {
		t.Helper()
		if got := strings.Count(out.String(), "Cannot do"); got != want {
			t.Errorf("%d lines, want %d:\n%s", got, want, out.String())
		}
	}
	for range 3 {
		l.Error(ctx, errors.New("no disk"), what, "pod", "p")
	}
	told(1)
	l.Error(ctx, errors.New("no disk"), other)
	told(2)
	l.Error(ctx, errors.New("no memory"), what)
	told(3)
	l.Over(what)
	l.Error(ctx, errors.New("no memory"), what)
	told(4)
	l.Error(ctx, errors.New("no disk"), other)
	told(4)
}
