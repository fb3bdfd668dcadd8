package backend

import (
	"github.com/acp-agent/acp-agent/acp/mcp"
	"github.com/acp-agent/acp-agent/internal/sandbox"
)

// Sandbox says what a process may do by itself. The comment of [mcp.Sandbox] has its fields.
type Sandbox = mcp.Sandbox

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
