// Package repeated keeps out of the log what fails again and again for the same reason: a failure is told when it begins and when its reason
// changes, and its repetitions only at verbosity 3.
package repeated

import (
	"context"
	"sync"

	"k8s.io/klog/v2"
)

// Log remembers what failed last, by the message that tells it. The zero value is ready.
type Log struct {
	mu   sync.Mutex
	last map[string]string
}

// Error logs a failure unless it is the one that this message told last.
func (l *Log) Error(ctx context.Context, err error, message string, keysAndValues ...any) {
	log := klog.FromContext(ctx)
	if l.note(message, err.Error()) {
		log.Error(err, message, keysAndValues...)
		return
	}
	log.V(3).Info(message, append(keysAndValues, "err", err)...)
}

func (l *Log) note(message, reason string) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last[message] == reason {
		return false
	}
	if l.last == nil {
		l.last = map[string]string{}
	}
	l.last[message] = reason
	return true
}

// Over tells that what the message is about has worked, so that the next failure is news.
func (l *Log) Over(message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.last, message)
}
