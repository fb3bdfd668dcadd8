package mcp

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio"
	HTTP  Transport = "http"
	SSE   Transport = "sse"
)

// State is the state of a server.
type State string

// The states.
const (
	// Idle means that the server was not needed yet.
	Idle State = "idle"
	// Starting means that it is being started or connected, or given time to read the roots.
	Starting State = "starting"
	// Ready means that it accepts calls.
	Ready State = "ready"
	// Waiting means that it ended or failed, and will be started again after a delay.
	Waiting State = "waiting"
	// Failed means that it could not be started. It is tried again when it is next needed.
	Failed State = "failed"
	// Stopped means that the session was closed or no longer has the server.
	Stopped State = "stopped"
)

// Status describes a server to a person, without its secrets.
type Status struct {
	// Name is the client's name for the server, and Prefix the beginning of the names of its tools,
	// which no other server of the session has.
	Name, Prefix string
	Transport    Transport
	// File is the path of the file in a root that configures the server, "" if the client does.
	File  string
	State State
	// Waiting says why it is still starting, such as "it has not answered yet"; otherwise it is "".
	Waiting string
	// Err is the reason why it failed or ended, nil otherwise.
	Err error
	// Restarts is how often it was started again after it failed or ended.
	Restarts int
	// Product is the name and version that the server reports, and Revision the revision of MCP
	// that it speaks. Both are "" until it was connected.
	Product, Revision string
	// Instructions are what the server says about its use.
	Instructions string
	// Prompts are those that were listed last, nil if they were not.
	Prompts []Prompt
	// RootsDeclared reports whether the server may ask for the roots.
	RootsDeclared bool
	// SentRoots are the URIs of the roots that were last sent to it, nil if it never asked.
	SentRoots []string
	// Warnings has an entry for each deprecated feature in use.
	Warnings []string
}
