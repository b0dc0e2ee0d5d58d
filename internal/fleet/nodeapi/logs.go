package nodeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/bayplan/bayplan/internal/fleet/life"
)

// options are those of a request for logs.
type options struct {
	tail, limit                  int64 // -1 is all
	follow, timestamps, previous bool
	since                        time.Time
	stderr                       bool // alone: nothing is written there
}

func parseOptions(q url.Values, now time.Time) (options, error) {
	o := options{tail: -1, limit: -1}
	var err error
	number := func(name string, into *int64) {
		if text := q.Get(name); text != "" && err == nil {
			if *into, err = strconv.ParseInt(text, 10, 64); err != nil || *into < 0 {
				err = fmt.Errorf("%s: %q is no number from 0", name, text)
			}
		}
	}
	flag := func(name string, into *bool) {
		if text := q.Get(name); text != "" && err == nil {
			if *into, err = strconv.ParseBool(text); err != nil {
				err = fmt.Errorf("%s: %q is neither true nor false", name, text)
			}
		}
	}
	number("tailLines", &o.tail)
	number("limitBytes", &o.limit)
	flag("follow", &o.follow)
	flag("timestamps", &o.timestamps)
	flag("previous", &o.previous)
	seconds := int64(-1)
	number("sinceSeconds", &seconds)
	if seconds >= 0 {
		o.since = now.Add(-time.Duration(seconds) * time.Second)
	}
	if text := q.Get("sinceTime"); text != "" && err == nil {
		if o.since, err = time.Parse(time.RFC3339, text); err != nil {
			err = fmt.Errorf("sinceTime: %q is no time", text)
		}
	}
	o.stderr = q.Get("stream") == "Stderr"
	return o, err
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	o, err := parseOptions(r.URL.Query(), s.Clock.Now())
	if err != nil {
		http.Error(w, "log options: "+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	get := func() (life.Log, error) {
		return s.Source.LogOf(s.node(r), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), o.previous)
	}
	log, err := get()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusOK)
	out := &printer{w: w, options: o, left: o.limit}
	if o.stderr {
		return
	}
	next := out.print(log, firstLine(log, o, s.Clock.Now()), s.Clock.Now())
	if o.follow {
		s.follow(r.Context(), get, log, next, out)
	}
}

// follow writes the lines of a run as they come, until it ends.
func (s *Server) follow(ctx context.Context, get func() (life.Log, error), log life.Log, next int64, out *printer) {
	start := log.Start
	for log.Ended.IsZero() && out.left != 0 {
		out.flush()
		if !wait(ctx, s.Clock, log, next) {
			return
		}
		newer, err := get()
		if err != nil {
			return
		}
		if !newer.Start.Equal(start) {
			// It has ended and runs again: what it wrote up to its end is written.
			return
		}
		log = newer
		next = out.print(log, next, s.Clock.Now())
	}
}

// endPoll is how often one looks whether a followed container has ended.
const endPoll = time.Second

// wait waits until the next line is written, or it is time to look whether the container has ended.
func wait(ctx context.Context, c clock.Clock, log life.Log, next int64) bool {
	pause := endPoll
	if !log.Lines.Complete(next) {
		_, after := log.Lines.Line(next)
		pause = min(pause, max(time.Millisecond, log.Start.Add(after).Sub(c.Now())))
	}
	select {
	case <-ctx.Done():
		return false
	case <-c.After(pause):
		return true
	}
}

// written is how many lines there are by now.
func written(log life.Log, now time.Time) int64 {
	if !log.Ended.IsZero() && log.Ended.Before(now) {
		now = log.Ended
	}
	return log.Lines.Count(now.Sub(log.Start))
}

// firstLine is the first one that was asked for.
func firstLine(log life.Log, o options, now time.Time) int64 {
	count, first := written(log, now), int64(0)
	if !o.since.IsZero() {
		first = min(count, log.Lines.Count(o.since.Sub(log.Start)-1))
	}
	if o.tail >= 0 {
		first = max(first, count-o.tail)
	}
	return first
}

// printer writes lines until its limit.
type printer struct {
	w       http.ResponseWriter
	options options
	left    int64
}

// print writes the lines from first on that are there by now, and returns the number of the next.
func (p *printer) print(log life.Log, first int64, now time.Time) int64 {
	count := written(log, now)
	for n := first; n < count; n++ {
		text, after := log.Lines.Line(n)
		if p.options.timestamps {
			text = log.Start.Add(after).UTC().Format(time.RFC3339Nano) + " " + text
		}
		text += "\n"
		if p.left >= 0 {
			text = text[:min(int64(len(text)), p.left)]
			p.left -= int64(len(text))
		}
		if _, err := io.WriteString(p.w, text); err != nil || p.left == 0 {
			return count
		}
	}
	return max(first, count)
}

func (p *printer) flush() {
	if f, ok := p.w.(http.Flusher); ok {
		f.Flush()
	}
}
