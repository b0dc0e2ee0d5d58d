package pod

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"golang.org/x/sys/unix"
)

// attach joins a client's files to the container's streams until one of the two ends.
func (p *Pod) attach(conn *protocol.Conn, request *protocol.AttachRequest) error {
	c, err := p.running(request.ID)
	if err != nil {
		return err
	}
	files, err := takeFiles(conn, request.Stdin)
	if err != nil {
		return err
	}
	if err := makePollable(files); err != nil {
		return err
	}
	input, output := files[0], files[1:]
	drained := c.stdio.join(output)
	if input != nil {
		go c.stdio.feed(input)
	}
	select {
	case <-c.ended:
	case <-hangup(conn):
		c.stdio.leave(output)
	}
	if input != nil {
		_ = input.Close()
	}
	for _, done := range drained {
		<-done
	}
	return conn.Send(&protocol.Reply{Done: true})
}

// makePollable replaces files by such as Go's poller takes, which can be closed under a reader and have deadlines. They are this process's alone.
func makePollable(files []*os.File) error {
	for i, file := range files {
		if file == nil {
			continue
		}
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("stream of the client: %w", err)
		}
		_ = file.Close()
		if err := unix.SetNonblock(fd, true); err != nil {
			_ = unix.Close(fd)
			return fmt.Errorf("stream of the client: %w", err)
		}
		files[i] = os.NewFile(uintptr(fd), "client")
	}
	return nil
}

// takeFiles sorts the files of an exec or attach call: input (nil without stdin), output, error.
func takeFiles(conn *protocol.Conn, stdin bool) ([]*os.File, error) {
	files := conn.TakeFiles()
	want := 2
	if stdin {
		want = 3
	}
	if len(files) != want {
		for _, file := range files {
			_ = file.Close()
		}
		return nil, fmt.Errorf("the call came with %d files, not %d", len(files), want)
	}
	if !stdin {
		files = append([]*os.File{nil}, files...)
	}
	return files, nil
}

// join makes the pumps write to the client's files too: output and error. With a terminal the second stays unused.
func (s *stdio) join(output []*os.File) []chan struct{} {
	var drained []chan struct{}
	for i, file := range output {
		if i >= len(s.pumps) {
			_ = file.Close()
			continue
		}
		done := make(chan struct{})
		drained = append(drained, done)
		pump := s.pumps[i]
		pump.mu.Lock()
		pump.clients[file] = done
		pump.mu.Unlock()
	}
	return drained
}

func (s *stdio) leave(output []*os.File) {
	for _, pump := range s.pumps {
		pump.mu.Lock()
		for _, file := range output {
			if pump.clients[file] != nil {
				pump.drop(file)
			}
		}
		pump.mu.Unlock()
	}
}

// feed copies the client's input to the container; at its end, a container that asked for it (stdinOnce) reads the end as well.
func (s *stdio) feed(input *os.File) {
	s.mu.Lock()
	target := s.stdin
	s.mu.Unlock()
	if target == nil {
		return
	}
	_, err := io.Copy(writeOnly{target}, input)
	if s.stdinOnce && !errors.Is(err, unix.EIO) {
		s.closeStdin()
	}
}

// writeOnly hides other methods of a writer, so that io.Copy moves the bytes through a buffer and keeps to the poller.
type writeOnly struct{ io.Writer }
