// Package crilog writes a container's output in the log format of the Kubernetes CRI.
//
// A line of the file is `TIME STREAM TAG CONTENT`, with the time in RFC 3339 with nanoseconds, the stream stdout or stderr, and the
// tag F for a full line or P for a part of one that continues in the next. Streams of one container share a Log; each Stream cuts
// what is written to it into lines and hands whole batches to the Log, so that a burst of output costs one write.
package crilog

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// maxLine is the longest content of one log line, in bytes; longer output is split into parts. It is what containerd and CRI-O use.
const maxLine = 16 << 10

// timeFormat is RFC3339Nano with all nine digits, so that logs sort and align.
const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// Log is a container's log file. Its methods may be called from several goroutines.
type Log struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	file *os.File
}

// Open opens the log for appending, and makes it if need be.
func Open(path string, now func() time.Time) (*Log, error) {
	l := &Log{path: path, now: now}
	return l, l.Reopen()
}

// Reopen opens the file of the log's name anew: after a rotation that is another file.
func (l *Log) Reopen() error {
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err != nil {
		return fmt.Errorf("open container log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = file
	return nil
}

// Close closes the file. What is written later is dropped.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// write appends a batch of lines. A full disk loses log lines and must not stop the container, so there is no error to give.
func (l *Log) write(batch []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_, _ = l.file.Write(batch)
	}
}

// Stream is one of the container's streams. It is written to by one goroutine.
type Stream struct {
	log  *Log
	name string
	part []byte // the line begun and not ended yet
	out  []byte
}

// Stream gives the stream of that name, "stdout" or "stderr".
func (l *Log) Stream(name string) *Stream { return &Stream{log: l, name: name} }

// Write takes output in whatever pieces it comes.
func (s *Stream) Write(p []byte) (int, error) {
	var stamp [len(timeFormat) + 8]byte
	now := s.log.now().AppendFormat(stamp[:0], timeFormat)
	s.out = s.out[:0]
	start := 0
	for i, c := range p {
		if c == '\n' {
			s.line(now, 'F', p[start:i])
			start = i + 1
		} else if len(s.part)+i-start == maxLine {
			s.line(now, 'P', p[start:i])
			start = i
		}
	}
	s.part = append(s.part, p[start:]...)
	if len(s.out) > 0 {
		s.log.write(s.out)
	}
	return len(p), nil
}

// Flush writes what is left of a last line that has no newline, as a part, because that is what it is.
func (s *Stream) Flush() {
	if len(s.part) == 0 {
		return
	}
	s.out = s.out[:0]
	s.line(s.log.now().AppendFormat(nil, timeFormat), 'P', nil)
	s.log.write(s.out)
}

// line formats the begun part and its continuation as one line of the file.
func (s *Stream) line(stamp []byte, tag byte, rest []byte) {
	s.out = append(s.out, stamp...)
	s.out = append(s.out, ' ')
	s.out = append(s.out, s.name...)
	s.out = append(s.out, ' ', tag, ' ')
	s.out = append(s.out, s.part...)
	s.out = append(s.out, rest...)
	s.out = append(s.out, '\n')
	s.part = s.part[:0]
}
