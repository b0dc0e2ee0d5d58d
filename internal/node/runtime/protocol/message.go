package protocol

import (
	"encoding/json"
	"time"
)

// Version is the version of this protocol that a helper tells in its Hello. A change that an older peer could not understand raises it.
const Version = 1

// Request is one call. Exactly one field is set; its name says what is asked.
type Request struct {
	Watch  *WatchRequest  `json:"watch,omitempty"`
	Start  *StartRequest  `json:"start,omitempty"`
	Signal *SignalRequest `json:"signal,omitempty"`
	Update *UpdateRequest `json:"update,omitempty"`
	Remove *RemoveRequest `json:"remove,omitempty"`
	Reopen *ReopenRequest `json:"reopen,omitempty"`
	Exec   *ExecRequest   `json:"exec,omitempty"`
	Attach *AttachRequest `json:"attach,omitempty"`
	Resize *ResizeRequest `json:"resize,omitempty"`
	Dial   *DialRequest   `json:"dial,omitempty"`
	Quit   *QuitRequest   `json:"quit,omitempty"`
}

// Reply is one answer. Error is set when the call failed; then nothing else is.
type Reply struct {
	Error *Error `json:"error,omitempty"`
	// Hello opens the answer to Watch.
	Hello *Hello `json:"hello,omitempty"`
	// State answers Start, and is sent by Watch for each container and each change of one.
	State *ContainerState `json:"state,omitempty"`
	// Exec is sent twice by Exec: with a PID when the process runs, with Exited when it has ended.
	Exec *ExecState `json:"exec,omitempty"`
	// Done answers calls that have nothing to tell but that they were carried out.
	Done bool `json:"done,omitempty"`
}

// Code tells the kinds of failure apart that a caller acts upon.
type Code string

const (
	// Unknown is a failure without a kind: the message tells what went wrong.
	Unknown Code = ""
	// NotFound means that the helper holds no such container.
	NotFound Code = "NotFound"
	// NotRunning means that the container exists but has no process to act on.
	NotRunning Code = "NotRunning"
	// Exists means that a container of that id was started before.
	Exists Code = "Exists"
	// Unsupported means that this helper does not know the call.
	Unsupported Code = "Unsupported"
)

// Error is a failure as it travels.
type Error struct {
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// WatchRequest asks for the state of all containers, and for every change of it from then on.
type WatchRequest struct{}

// Hello tells who answers.
type Hello struct {
	Version int `json:"version"`
	PID     int `json:"pid"`
	// SandboxPID is process 1 of the pod's shared PID namespace, as the host numbers it; 0 when the pod shares none.
	SandboxPID int `json:"sandboxPID,omitempty"`
	// Containers is how many State replies follow before the live changes begin.
	Containers int `json:"containers"`
}

// StartRequest creates a container from an OCI runtime spec and starts its process.
type StartRequest struct {
	ID string `json:"id"`
	// Spec is an OCI runtime spec (github.com/opencontainers/runtime-spec) with absolute paths. Its root file system is mounted already.
	Spec json.RawMessage `json:"spec"`
	// LogPath is the file that takes the container's output in CRI format; empty discards the output.
	LogPath string `json:"logPath,omitempty"`
	// RecordDir is the directory in which the helper keeps the container's start and exit records; it exists.
	RecordDir string `json:"recordDir"`
	// Stdin keeps the standard input open for Attach; without it the process reads the end of file.
	Stdin bool `json:"stdin,omitempty"`
	// StdinOnce closes the standard input when the first attached client leaves.
	StdinOnce bool `json:"stdinOnce,omitempty"`
}

// Phase is how far a container has come.
type Phase string

const (
	// Running containers have a process.
	Running Phase = "Running"
	// Exited containers had one.
	Exited Phase = "Exited"
)

// ContainerState is what the helper knows about a container; it is also the form of the records on disk.
type ContainerState struct {
	ID    string `json:"id"`
	Phase Phase  `json:"phase"`
	// PID is the container's first process, as the host numbers it; 0 once it has exited.
	PID int `json:"pid,omitempty"`
	// StartTicks is the process's start time in clock ticks since boot (field 22 of /proc/PID/stat). With PID it names the process for good.
	StartTicks uint64    `json:"startTicks,omitempty"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	// ExitCode is the process's own, or 128 plus the signal that ended it.
	ExitCode int `json:"exitCode"`
	// OOMKilled tells that the kernel killed a process of the container for want of memory, and that the container failed.
	OOMKilled bool `json:"oomKilled,omitempty"`
	// Message explains an exit that the process did not choose.
	Message string `json:"message,omitempty"`
}

// SignalRequest sends a signal to a container's first process, or to all its processes.
type SignalRequest struct {
	ID     string `json:"id"`
	Signal int    `json:"signal"`
	All    bool   `json:"all,omitempty"`
}

// UpdateRequest changes the cgroup of a running container. Resources is an OCI LinuxResources; what it leaves out stays as it is.
type UpdateRequest struct {
	ID        string          `json:"id"`
	Resources json.RawMessage `json:"resources"`
}

// RemoveRequest makes the helper forget an exited container, with its cgroup and records of runtime state. It is idempotent.
type RemoveRequest struct {
	ID string `json:"id"`
}

// ReopenRequest makes the helper open the container's log file anew, after it was rotated.
type ReopenRequest struct {
	ID string `json:"id"`
}

// ExecRequest runs a process inside a running container. The request carries the files for its standard input (if Stdin), output
// and error, in this order; with a Terminal it carries none, and the reply that tells the PID carries the terminal's master side.
// Closing the connection kills the process.
type ExecRequest struct {
	ID string `json:"id"`
	// Process is an OCI Process.
	Process json.RawMessage `json:"process"`
	Stdin   bool            `json:"stdin,omitempty"`
}

// ExecState tells that an exec process runs, or how it ended.
type ExecState struct {
	PID      int  `json:"pid,omitempty"`
	Exited   bool `json:"exited,omitempty"`
	ExitCode int  `json:"exitCode"`
}

// AttachRequest joins a client to a container's streams: the request carries a file to read standard input from (if Stdin), and
// files to write output and error to. The reply Done comes when the container has exited or the client has left.
type AttachRequest struct {
	ID    string `json:"id"`
	Stdin bool   `json:"stdin,omitempty"`
}

// ResizeRequest changes the size of a container's terminal.
type ResizeRequest struct {
	ID     string `json:"id"`
	Width  uint16 `json:"width"`
	Height uint16 `json:"height"`
}

// DialRequest connects to a TCP port inside the pod's network namespace. The reply carries the connected socket.
type DialRequest struct {
	Port uint16 `json:"port"`
}

// QuitRequest ends the helper. It refuses while a container runs.
type QuitRequest struct{}
