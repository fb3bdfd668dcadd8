package profile

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/workspace"
)

// Way is how an agent is given the directories of a session besides its working directory.
type Way string

// The ways. Auto is the protocol's where the agent advertises it, else flags if its profile knows one,
// else context.
const (
	Auto       Way = ""
	ByProtocol Way = "protocol" // additionalDirectories in its lifecycle requests
	ByFlags    Way = "flags"    // arguments of its process, of which each session then has its own
	ByContext  Way = "context"  // a marked block before the first prompt
)

// ParseWay reads a way as a person writes it, "auto" included.
func ParseWay(s string) (Way, error) {
	switch w := Way(s); w {
	case "auto":
		return Auto, nil
	case ByProtocol, ByFlags, ByContext:
		return w, nil
	}
	return Auto, fmt.Errorf("%q is no way to give an agent directories: write auto, protocol, flags or context", s)
}

func (w Way) String() string {
	if w == Auto {
		return "auto"
	}
	return string(w)
}

// Tools says whether an agent that takes directories by neither protocol nor flags is given tools for them, by
// an MCP server of ours.
type Tools int

// The choices. WithTools are those that only read, unless the agent is known to ask before it writes by them (A30).
const (
	WithTools Tools = iota
	WithWritingTools
	WithoutTools
)

// ParseTools reads a choice as a person writes it.
func ParseTools(s string) (Tools, error) {
	switch s {
	case "on":
		return WithTools, nil
	case "write":
		return WithWritingTools, nil
	case "off":
		return WithoutTools, nil
	}
	return WithTools, fmt.Errorf("%q is no choice of tools: write on, write or off", s)
}

func (t Tools) String() string {
	switch t {
	case WithWritingTools:
		return "write"
	case WithoutTools:
		return "off"
	}
	return "on"
}

// Relay says whether the MCP servers that an agent starts for a session are started behind a relay, which answers them for
// the roots in its place.
type Relay int

// The choices.
const (
	WithoutRelay Relay = iota
	WithRelay
)

// ParseRelay reads a choice as a person writes it.
func ParseRelay(s string) (Relay, error) {
	switch s {
	case "on":
		return WithRelay, nil
	case "off":
		return WithoutRelay, nil
	}
	return WithoutRelay, fmt.Errorf("%q is neither on nor off", s)
}

func (r Relay) String() string {
	if r == WithRelay {
		return "on"
	}
	return "off"
}

// Profile describes an agent. The zero value describes any.
type Profile struct {
	// Name is what it is called on the command line: "opencode".
	Name string
	// Title is its name as its makers write it.
	Title string
	// Command is the program, a name that is searched for in PATH or an absolute path.
	Command string
	// Args make it speak ACP on its standard streams.
	Args []string
	// Env is added to its environment as NAME=VALUE.
	Env []string
	// Packages are the npm packages by which npx and the like start it.
	Packages []string
	// Roots is the way for directories, Auto for the best that there is.
	Roots Way
	// Flag names one directory, and is repeated: "--add-dir". Empty if it has none.
	Flag string
	// FlagSplits are characters at which the agent splits a Flag's value. A directory that has one cannot be given so.
	FlagSplits string
	// LateReplay: it answers session/load before it has replayed all of the conversation.
	LateReplay bool
	// LossyReplay: what it replays at session/load lacks what was seen, such as its changes. Our record is shown instead.
	LossyReplay bool
	// Tools says whether it is given tools for directories that it is told of in words.
	Tools Tools
	// AskEnv is added to its environment as NAME=VALUE, unless that has the name already: with it the agent asks before
	// it writes by those tools (A30). Empty for one that is not known to ask.
	AskEnv []string
	// Relay says whether the session's MCP servers are started behind a relay.
	Relay Relay
	// Login is what a person types in a terminal to log in, empty if not known.
	Login string
	// Install says how to get it.
	Install string
	// Checked is the version with which this was seen to be so, empty if it was not.
	Checked string
}

// Start is the command that starts the agent.
func (p Profile) Start() process.Command {
	return process.Command{Path: p.Command, Args: slices.Clone(p.Args), Env: slices.Clone(p.Env), Name: p.Name}
}

// Flags are the arguments that give the agent's process dirs. ok is false if it cannot be given them so.
func (p Profile) Flags(dirs workspace.Dirs) (args []string, ok bool) {
	if p.Flag == "" {
		return nil, false
	}
	for _, dir := range dirs.All() {
		if p.FlagSplits != "" && strings.ContainsAny(dir.String(), p.FlagSplits) {
			return nil, false
		}
		args = append(args, p.Flag, dir.String())
	}
	return args, true
}

// Find returns the profile with a name.
func Find(profiles []Profile, name string) (Profile, bool) {
	for _, p := range profiles {
		if p.Name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Match returns the profile of the agent that a command starts: by the program's base name, or by the npm
// package among the arguments of a package runner.
func Match(profiles []Profile, c process.Command) (Profile, bool) {
	program := Program(c.Path)
	for _, p := range profiles {
		if p.Command != "" && Program(p.Command) == program {
			return p, true
		}
		for _, arg := range c.Args {
			if runsPackages(program) && slices.Contains(p.Packages, unversioned(arg)) {
				return p, true
			}
		}
	}
	return Profile{}, false
}

// runsPackages reports whether a program starts npm packages.
func runsPackages(program string) bool {
	switch program {
	case "npx", "npm", "bunx", "bun", "pnpm", "pnpx", "yarn":
		return true
	}
	return false
}

// unversioned is a package's name without "@1.2.3" behind it.
func unversioned(arg string) string {
	if at := strings.LastIndexByte(arg, '@'); at > 0 {
		return arg[:at]
	}
	return arg
}

// Program is a program's name: the last element of its path, without the ending that Windows adds.
func Program(path string) string {
	program := filepath.Base(path)
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		if cut := len(program) - len(ending); cut > 0 && strings.EqualFold(program[cut:], ending) {
			return program[:cut]
		}
	}
	return program
}
