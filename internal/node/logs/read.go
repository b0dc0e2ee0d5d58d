package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Options say what of a log is wanted, as the pods/log API does.
type Options struct {
	// Since leaves out what is older; zero means nothing is.
	Since time.Time
	// Tail is the number of lines from the end, negative for all.
	Tail int64
	// Limit is the number of bytes after which to stop, negative for no limit.
	Limit      int64
	Timestamps bool
	// Follow goes on until Ended is closed and the log is read to its end.
	Follow bool
	Ended  <-chan struct{}
}

// stampFormat has a fixed width, so that lines align.
const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// errLimit ends a read whose limit of bytes is used up.
var errLimit = errors.New("limit reached")

// Read copies the log at path to the writers of its two streams; a nil writer leaves a stream out. It returns when the log has ended, the
// limit is reached, ctx is done or a writer fails.
func Read(ctx context.Context, path string, o Options, stdout, stderr io.Writer) error {
	r := &reader{path: path, o: o, stdout: stdout, stderr: stderr, left: o.Limit}
	defer r.close()
	err := r.run(ctx)
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

type reader struct {
	path           string
	o              Options
	stdout, stderr io.Writer
	left           int64 // bytes to go, negative without limit
	file           *os.File
	in             *bufio.Reader
	part           []byte // the beginning of a line that is still being written
	middle         map[cri.LogStreamType]bool
}

func (r *reader) close() {
	if r.file != nil {
		r.file.Close()
	}
}

func (r *reader) run(ctx context.Context) error {
	if err := r.open(); err != nil {
		return err
	}
	if r.o.Tail >= 0 {
		if err := r.seekTail(); err != nil {
			return err
		}
	}
	if !r.o.Follow {
		return r.drain()
	}
	return r.follow(ctx)
}

func (r *reader) open() error {
	f, err := os.Open(r.path)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	r.close()
	r.file, r.in, r.middle = f, bufio.NewReaderSize(f, 1<<16), map[cri.LogStreamType]bool{}
	r.part = nil
	return nil
}

func (r *reader) seekTail() error {
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	offset, err := tailOffset(r.file, info.Size(), r.o.Tail)
	if err != nil {
		return err
	}
	_, err = r.file.Seek(offset, io.SeekStart)
	return err
}

// drain copies all that is there.
func (r *reader) drain() error {
	for {
		line, err := r.in.ReadSlice('\n')
		if len(r.part) > 0 || err != nil {
			r.part = append(r.part, line...)
			line = r.part
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil // what there is of a last line waits for its end
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		err = r.emit(line)
		r.part = r.part[:0]
		if err != nil {
			return err
		}
	}
}

// emit writes one entry out. An entry that can't be parsed is not worth losing the rest for.
func (r *reader) emit(line []byte) error {
	e, err := Parse(line)
	if err != nil {
		return nil
	}
	out := r.stdout
	if e.Stream == cri.Stderr {
		out = r.stderr
	}
	if out == nil || e.Time.Before(r.o.Since) {
		return nil
	}
	var b bytes.Buffer
	if r.o.Timestamps && !r.middle[e.Stream] {
		b.WriteString(e.Time.UTC().Format(stampFormat))
		b.WriteByte(' ')
	}
	r.middle[e.Stream] = e.Partial
	b.Write(e.Text)
	if !e.Partial {
		b.WriteByte('\n')
	}
	return r.write(out, b.Bytes())
}

func (r *reader) write(out io.Writer, data []byte) error {
	if r.left >= 0 && int64(len(data)) >= r.left {
		if _, err := out.Write(data[:r.left]); err != nil {
			return err
		}
		return errLimit
	}
	if r.left >= 0 {
		r.left -= int64(len(data))
	}
	_, err := out.Write(data)
	return err
}
