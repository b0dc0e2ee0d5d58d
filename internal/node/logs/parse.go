// Package logs reads container logs in the format of the CRI: one entry a line,
//
//	2026-11-30T12:00:00.123456789Z stdout F the text of the line
//
// where F ends a line of the container and P is a part of one that goes on in the next entry. Read copies entries out with the options of
// the pods/log API, across rotations, and follows a log without polling; Tail takes the end of a log.
package logs

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Entry is one line of a log file.
type Entry struct {
	Time   time.Time
	Stream cri.LogStreamType
	// Partial means that the container's line goes on in the next entry of the stream.
	Partial bool
	// Text is without the line's end. It shares memory with what was parsed.
	Text []byte
}

// maxTimestamp bounds what is looked through for a timestamp.
const maxTimestamp = 64

// Parse reads one line of a log file, with or without its newline.
func Parse(line []byte) (Entry, error) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	stamp, rest, ok := bytes.Cut(line, []byte(" "))
	if !ok || len(stamp) > maxTimestamp {
		return Entry{}, fmt.Errorf("log entry %.80q has no timestamp", line)
	}
	t, err := time.Parse(time.RFC3339Nano, string(stamp))
	if err != nil {
		return Entry{}, fmt.Errorf("log entry with timestamp %q: %w", stamp, err)
	}
	stream, rest, ok := bytes.Cut(rest, []byte(" "))
	if s := cri.LogStreamType(stream); !ok || s != cri.Stdout && s != cri.Stderr {
		return Entry{}, fmt.Errorf("log entry of %s is of stream %.20q instead of stdout or stderr", stamp, stream)
	}
	tags, text, _ := bytes.Cut(rest, []byte(" "))
	tag, _, _ := strings.Cut(string(tags), string(cri.LogTagDelimiter))
	if t := cri.LogTag(tag); t != cri.LogTagFull && t != cri.LogTagPartial {
		return Entry{}, fmt.Errorf("log entry of %s has the tag %.20q instead of F or P", stamp, tag)
	}
	return Entry{Time: t, Stream: cri.LogStreamType(stream), Partial: cri.LogTag(tag) == cri.LogTagPartial, Text: text}, nil
}
