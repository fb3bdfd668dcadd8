package backend

import "github.com/acp-agent/acp-agent/internal/sandbox"

// Sandbox says what a process and its descendants may do by themselves. The zero Sandbox does not
// restrict it. Its fields:
//
//	Mode SandboxMode      // how much it is restricted
//	Write, Read []string  // files and directories that it may also write or read: absolute, or
//	                      // beginning with "~/" or "$NAME/"; those in Write must exist
//	State []string        // the same for what it keeps; directories end with "/" and are created
//	Ports hosts.Ports     // the TCP ports to which it may connect
//	Hosts hosts.Hosts     // the hosts to which it may connect
//	Helper []string       // the command line of acp-agent that enforces Hosts for ordinary users
//	Optional bool         // start it without a sandbox where there is none, and say so
//	Records string        // the directory that remembers where restricted processes could write
//	Own []string          // acp-agent's own files, which the user is never told to grant
//	Hidden []string       // directories that it cannot read where the system lets us hide them
type Sandbox = sandbox.Settings

// SandboxMode is how much a process is restricted: SandboxOff, SandboxWrite or SandboxStrict.
type SandboxMode = sandbox.Mode

// The modes of the sandbox.
const (
	// SandboxOff does not restrict it.
	SandboxOff = sandbox.Off
	// SandboxWrite lets it change files only in the session's roots, the temporary directory and
	// its own state.
	SandboxWrite = sandbox.Write
	// SandboxStrict lets it also read only there, and in directories of the system, of its program
	// and of PATH.
	SandboxStrict = sandbox.Strict
)
