package store

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger shows etcd's errors and nothing else.
func newLogger() *zap.Logger {
	config := zap.NewProductionConfig()
	config.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	config.Encoding = "console"
	config.DisableStacktrace = true
	logger, err := config.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return expected{core} }))
	if err != nil {
		return zap.NewNop()
	}
	return logger
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
