package embedded

// Name is the runtime's name, as in the `bayplan://` of a pod's containerID.
const Name = "bayplan"

// Version is the runtime's version, as nodes report it.
const Version = "0.1.0"
