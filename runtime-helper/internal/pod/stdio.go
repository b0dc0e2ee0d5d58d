package pod

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bayplan/bayplan/internal/node/runtime/protocol"
	"github.com/bayplan/bayplan/runtime-helper/internal/crilog"
	"github.com/opencontainers/runc/libcontainer"
	"golang.org/x/sys/unix"
)

// stdio connects a container's standard streams to its log and to attached clients.
//
// Output goes through FIFOs of the file system. The container's own descriptors are open for reading and writing, so there is always a
// reader: when this process is killed the container neither gets SIGPIPE nor loses a byte, it blocks at worst when the FIFO is full,
// until the next helper opens the FIFO by its name. A terminal cannot be saved in this way.
type stdio struct {
	dir   string
	id    string
	log   *crilog.Log // nil: output is discarded
	pumps []*pump
	wait  sync.WaitGroup

	stdinOnce bool
	mu        sync.Mutex
	stdin     io.WriteCloser // what attached clients write to; nil when there is none or it was closed
	terminal  *os.File       // the master side, nil without a terminal

	childFiles []*os.File
	console    *os.File // our end of the socket on which the terminal's master side arrives
}

// openStdio prepares the streams and hooks them into the process that will be started.
func (p *Pod) openStdio(request *protocol.StartRequest, process *libcontainer.Process, terminal bool) (*stdio, error) {
	s := &stdio{dir: filepath.Join(p.config.Dir, "io"), id: request.ID, stdinOnce: request.StdinOnce}
	if err := s.openLog(request.LogPath, p.now); err != nil {
		return nil, err
	}
	var err error
	if terminal {
		err = s.openConsole(process)
	} else {
		err = s.openFIFOs(request.Stdin, process)
	}
	if err != nil {
		s.abandon()
		return nil, fmt.Errorf("streams of container %s: %w", request.ID, err)
	}
	return s, nil
}

func (s *stdio) openLog(path string, now func() time.Time) (err error) {
	if path == "" {
		return nil
	}
	s.log, err = crilog.Open(path, now)
	return err
}

func (s *stdio) fifo(name string) string { return filepath.Join(s.dir, s.id+"."+name) }

func (s *stdio) openFIFOs(stdin bool, process *libcontainer.Process) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"stdout", "stderr"} {
		_ = os.Remove(s.fifo(name)) // of a start that was cut off
		if err := unix.Mkfifo(s.fifo(name), 0o600); err != nil {
			return fmt.Errorf("make %s: %w", s.fifo(name), err)
		}
		child, err := openFIFO(s.fifo(name), 0)
		if err != nil {
			return err
		}
		s.childFiles = append(s.childFiles, child)
		if err := s.addPump(name); err != nil {
			return err
		}
	}
	process.Stdout, process.Stderr = s.childFiles[0], s.childFiles[1]
	if !stdin {
		return nil // libcontainer gives the process /dev/null
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	process.Stdin, s.stdin = reader, writer
	s.childFiles = append(s.childFiles, reader)
	return nil
}

// openFIFO opens both ends at once, so that opening never blocks and reading never ends.
func openFIFO(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (s *stdio) addPump(name string) error {
	source, err := openFIFO(s.fifo(name), unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	s.pumps = append(s.pumps, newPump(name, source, s.log))
	return nil
}

// openConsole asks libcontainer for a terminal; started receives it.
func (s *stdio) openConsole(process *libcontainer.Process) error {
	parent, child, err := socketPair()
	if err != nil {
		return err
	}
	process.ConsoleSocket, s.console = child, parent
	s.childFiles = append(s.childFiles, child)
	return nil
}

// started begins to move output, now that the process runs.
func (s *stdio) started() error {
	s.closeChildFiles()
	if s.console != nil {
		master, err := receiveTerminal(s.console)
		s.console = nil
		if err != nil {
			return fmt.Errorf("terminal of container %s: %w", s.id, err)
		}
		s.terminal, s.stdin = master, keepOpen{master}
		s.pumps = append(s.pumps, newPump("stdout", master, s.log))
	}
	s.runPumps()
	return nil
}

func (s *stdio) runPumps() {
	for _, pump := range s.pumps {
		s.wait.Go(pump.run)
	}
}

func (s *stdio) closeChildFiles() {
	for _, file := range s.childFiles {
		_ = file.Close()
	}
	s.childFiles = nil
}

// finish moves what the container has still written and closes everything. The container has exited.
func (s *stdio) finish() {
	for _, pump := range s.pumps {
		pump.stop()
	}
	s.wait.Wait()
	s.abandon()
}

// abandon closes everything and removes the FIFOs.
func (s *stdio) abandon() {
	s.closeChildFiles()
	s.closeStdin()
	if s.console != nil {
		_ = s.console.Close()
	}
	for _, pump := range s.pumps {
		_ = pump.source.Close()
	}
	if s.log != nil {
		_ = s.log.Close()
	}
	for _, name := range []string{"stdout", "stderr"} {
		_ = os.Remove(s.fifo(name))
	}
}

func (s *stdio) closeStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil {
		_ = s.stdin.Close()
		s.stdin = nil
	}
}

func (s *stdio) reopen() error {
	if s.log == nil {
		return nil
	}
	return s.log.Reopen()
}

func (s *stdio) resize(width, height uint16) error {
	if s.terminal == nil {
		return fmt.Errorf("container %s has no terminal", s.id)
	}
	return setSize(s.terminal, width, height)
}

// pump moves one stream of output from the container to the log and to attached clients.
type pump struct {
	name   string
	source *os.File
	stream *crilog.Stream

	mu      sync.Mutex
	clients map[*os.File]chan struct{} // what a client gets the stream from, and what is closed when it takes no more
}

func newPump(name string, source *os.File, log *crilog.Log) *pump {
	p := &pump{name: name, source: source, clients: map[*os.File]chan struct{}{}}
	if log != nil {
		p.stream = log.Stream(name)
	}
	return p
}

func (p *pump) run() {
	buffer := make([]byte, 16<<10)
	for {
		n, err := p.source.Read(buffer)
		p.deliver(buffer[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			p.drain(buffer)
		}
		if err != nil {
			break
		}
	}
	if p.stream != nil {
		p.stream.Flush()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.clients {
		p.drop(client)
	}
}

// stop makes run take what is there and return. A FIFO that we hold open ourselves never tells its end.
func (p *pump) stop() { _ = p.source.SetReadDeadline(time.Unix(1, 0)) }

// drain reads until the source is empty.
func (p *pump) drain(buffer []byte) {
	raw, err := p.source.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Read(int(fd), buffer)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 || err != nil {
				return
			}
			p.deliver(buffer[:n])
		}
	})
}

func (p *pump) deliver(output []byte) {
	if len(output) == 0 {
		return
	}
	if p.stream != nil {
		_, _ = p.stream.Write(output)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.clients {
		// A client that reads slowly makes the container wait, as a pipe does; one that does not read at all must not stop it.
		_ = client.SetWriteDeadline(time.Now().Add(clientPatience))
		if _, err := client.Write(output); err != nil {
			p.drop(client)
		}
	}
}

// clientPatience is how long an attached client may take to read a piece of output.
const clientPatience = 10 * time.Second

// drop lets go of a client. p.mu is held.
func (p *pump) drop(client *os.File) {
	close(p.clients[client])
	delete(p.clients, client)
	_ = client.Close()
}
