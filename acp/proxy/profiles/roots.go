package profiles

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/workspace"
)

// RootsMode is a way to give an agent the additional directories of a session.
type RootsMode string

// The ways to give an agent additional directories.
const (
	// RootsAuto uses the protocol if the agent advertises that, otherwise its flag if it has one,
	// otherwise the prompt.
	RootsAuto RootsMode = ""
	// RootsByProtocol uses additionalDirectories in lifecycle requests.
	RootsByProtocol RootsMode = "protocol"
	// RootsByFlags uses arguments of the agent's process. Sessions with the same arguments share a
	// process.
	RootsByFlags RootsMode = "flags"
	// RootsByContext describes the directories in the system prompt, or in a marked block after the
	// first prompt.
	RootsByContext RootsMode = "context"
)

// ParseRootsMode parses auto, protocol, flags or context.
func ParseRootsMode(s string) (RootsMode, error) {
	switch m := RootsMode(s); m {
	case "auto":
		return RootsAuto, nil
	case RootsByProtocol, RootsByFlags, RootsByContext:
		return m, nil
	}
	return RootsAuto, fmt.Errorf(
		"%q is not a way to give an agent folders: use auto, protocol, flags or context", s)
}

// String returns the mode as ParseRootsMode reads it.
func (m RootsMode) String() string { return cmp.Or(string(m), "auto") }

// ToolsMode chooses the tools of the MCP server that an agent gets for its additional directories
// if it accepts them neither by the protocol nor by flags.
type ToolsMode string

// The choices of tools.
const (
	// ToolsOn means tools that read, and also tools that write if the agent is known to ask before
	// it uses them.
	ToolsOn    ToolsMode = ""
	ToolsWrite ToolsMode = "write" // tools that read and write
	ToolsOff   ToolsMode = "off"   // none
)

// ParseToolsMode parses on, write or off.
func ParseToolsMode(s string) (ToolsMode, error) {
	switch m := ToolsMode(s); m {
	case "on":
		return ToolsOn, nil
	case ToolsWrite, ToolsOff:
		return m, nil
	}
	return ToolsOn, fmt.Errorf("invalid choice of tools %q: use on, write or off", s)
}

// String returns the choice as ParseToolsMode reads it.
func (m ToolsMode) String() string { return cmp.Or(string(m), "on") }

// Choose returns the way to give additional directories to an agent that does or does not advertise
// additionalDirectories, and the arguments for RootsByFlags.
func (r Roots) Choose(advertised bool, dirs workspace.Dirs) (mode RootsMode, flags []string) {
	flags, ok := r.flags(dirs)
	switch {
	case advertised && (r.Mode == RootsAuto || r.Mode == RootsByProtocol):
		return RootsByProtocol, nil
	case ok && (r.Mode == RootsAuto || r.Mode == RootsByFlags):
		return RootsByFlags, flags
	}
	return RootsByContext, nil
}

// flags returns the arguments that give the agent's process dirs, or false if they cannot be given
// by flags.
func (r Roots) flags(dirs workspace.Dirs) (args []string, ok bool) {
	if r.Flag == "" {
		return nil, false
	}
	for _, dir := range dirs.All() {
		if r.FlagSplits != "" && strings.ContainsAny(dir.String(), r.FlagSplits) {
			return nil, false
		}
		args = append(args, r.Flag, dir.String())
	}
	return args, true
}
