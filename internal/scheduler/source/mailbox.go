package source

import "sync"

// Mailbox hands values from many goroutines to one. Putting never waits.
type Mailbox[T any] struct {
	mu     sync.Mutex
	values []T
	ready  chan struct{}
}

// NewMailbox returns an empty mailbox.
func NewMailbox[T any]() *Mailbox[T] { return &Mailbox[T]{ready: make(chan struct{}, 1)} }

// Put adds a value.
func (m *Mailbox[T]) Put(value T) {
	m.mu.Lock()
	m.values = append(m.values, value)
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// Ready receives whenever there may be something to take.
func (m *Mailbox[T]) Ready() <-chan struct{} { return m.ready }

// Take returns all values, in the order in which they were put. used, which is overwritten, is kept for later ones.
func (m *Mailbox[T]) Take(used []T) []T {
	clear(used)
	m.mu.Lock()
	defer m.mu.Unlock()
	values := m.values
	m.values = used[:0]
	return values
}
