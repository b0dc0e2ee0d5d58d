package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger shows etcd's errors and nothing else. What etcd calls fatal ends the process: it must not go on when it cannot keep what it promises.
func newLogger(where string) *zap.Logger {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	config.Encoding = "console"
	config.DisableStacktrace = true
	config.EncoderConfig.EncodeTime = zapcore.ISO8601TimeEncoder
	logger, err := config.Build(
		zap.WrapCore(func(core zapcore.Core) zapcore.Core { return expected{core} }),
		zap.WithFatalHook(lastWords{where: where, out: os.Stderr, exit: os.Exit}),
	)
	if err != nil {
		return zap.NewNop()
	}
	return logger
}

// lastWords says in one line why the store ends the process, and what to do.
type lastWords struct {
	where string
	out   io.Writer
	exit  func(code int)
}

func (l lastWords) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	remedy := "see the lines above"
	cause := ""
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok {
			cause += ": " + err.Error()
			if errors.Is(err, syscall.ENOSPC) {
				remedy = "make room on the disk and start again"
			}
		}
	}
	fmt.Fprintf(l.out, "the store at %s ends: %s%s; what was acknowledged is kept: %s\n", l.where, entry.Message, cause, remedy)
	l.exit(1)
}

// expected leaves out what etcd calls an error and is none: a new member has no storage version until its first snapshot.
type expected struct{ zapcore.Core }

func (e expected) With(fields []zapcore.Field) zapcore.Core { return expected{e.Core.With(fields)} }

func (e expected) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Message == "failed to update storage version" {
		return checked
	}
	return e.Core.Check(entry, checked)
}
