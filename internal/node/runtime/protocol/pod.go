package protocol

// PodConfig is what a helper reads from its standard input, as one frame, when it starts. It is started inside the pod's new
// namespaces, and answers on its standard output with one Reply: Hello once its socket listens, or Error.
type PodConfig struct {
	SandboxID string `json:"sandboxID"`
	// Dir is the helper's own directory on a file system that a reboot empties: socket, FIFOs, libcontainer's state. It exists.
	Dir      string `json:"dir"`
	Hostname string `json:"hostname,omitempty"`
	// Pins are the files onto which the helper binds the namespaces that are the pod's own, by their name under /proc/PID/ns.
	// A namespace that is not pinned belongs to the node.
	Pins map[string]string `json:"pins,omitempty"`
	// Pinned is set when the namespaces were made and pinned before, and the helper was started inside them, as for pods with a user namespace; also
	// process 1 of a shared PID namespace is there then.
	Pinned bool `json:"pinned,omitempty"`
	// Sysctls are written inside the new namespaces, by name with dots.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// CgroupProcs are the cgroup.procs files that the helper writes itself to, to leave the cgroup of the agent.
	CgroupProcs []string `json:"cgroupProcs,omitempty"`
	// Recover lists containers that a former helper of this pod started. Then the namespaces exist already and the helper was
	// started inside them.
	Recover []RecoverRequest `json:"recover,omitempty"`
	// Recovering is set when this is not the pod's first helper, also if it had no containers.
	Recovering bool `json:"recovering,omitempty"`
}

// RecoverRequest names a container of a former helper. The fields are those of its StartRequest.
type RecoverRequest struct {
	ID string `json:"id"`
	// Pidfd is the descriptor, in the helper, of a pidfd of the container's first process; 0 when the agent has none. A process that has ended
	// and was reaped has no number any more, but who holds its pidfd can still learn how it ended (Linux 6.15).
	Pidfd     int    `json:"pidfd,omitempty"`
	LogPath   string `json:"logPath,omitempty"`
	RecordDir string `json:"recordDir"`
}

// The files of a helper below PodConfig.Dir.
const (
	// SocketName is the helper's socket.
	SocketName = "helper.sock"
	// PauseName holds the number and the start time of process 1 of the pod's shared PID namespace, if it has one.
	PauseName = "pause.pid"
	// RecordName is the file in a container's record directory that holds its last ContainerState.
	RecordName = "state.json"
)
