// Package profiles describes the ACP agents that are known: how each is started, how it takes
// additional directories, and where it departs from the protocol.
//
// [Known] returns the table in known.txt, which has a row for each agent. A row names only what
// differs from an agent that follows the protocol, grouped by the fields of [Profile]: Start,
// Roots, Finds, Context, State and Replay. To add an agent, add a row; each field says what to find
// out.
//
// [Match] finds the profile for a command line, and [Identify] the name under which the sessions of
// its agent are stored.
package profiles

import (
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/mod/semver"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/internal/sandbox/confine"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/workspace"
)

// Profile describes an agent. The zero value fits any agent that follows the protocol.
type Profile struct {
	// Name is the agent's name on the command line, such as "opencode".
	Name string
	// Identity is the name under which its sessions are stored, if it differs from Name. It is one
	// word.
	Identity string
	// Title is its name as its makers write it.
	Title string
	// Checked is the version with which the profile was verified. If it is empty, the profile
	// follows the agent's documentation.
	Checked string

	Start   Start
	Roots   Roots
	Finds   Finds
	Context Context
	State   State
	Replay  Replay
	Usage   Usage

	// NeverAsks says that it asks for no permission, whatever it does.
	NeverAsks bool
	// AsksLittle says for users when it asks, if by default it does not ask before it changes files
	// and runs commands.
	AsksLittle string
	// Sandbox restricts its processes, as the user configures it. State.Writes is added to what
	// they may write. A restriction cannot be widened, so each set of roots has its own process.
	Sandbox backend.Sandbox
}

// Start is how an agent is started.
type Start struct {
	// Command is the program: a name that is searched for in PATH, or an absolute path.
	Command string
	// Args make it speak ACP on its standard streams.
	Args []string
	// Env is added to its environment, as NAME=VALUE.
	Env []string
	// Packages are the npm packages by which npx and similar runners start it.
	Packages []string
	// Login is the command for a terminal that logs the user in, empty if unknown.
	Login string
	// Install says how to install it.
	Install string
}

// Roots is how an agent is given additional directories, and tools and MCP servers for them.
type Roots struct {
	// Mode is the way to give it additional directories.
	Mode RootsMode
	// Flag is a command-line flag that takes one directory and can be repeated, such as
	// "--add-dir". Empty if it has none.
	Flag string
	// FlagSplits are characters at which the agent splits the flag's value: a directory that
	// contains one cannot be given by flag.
	FlagSplits string
	// OnlyNew says that it takes additional directories by the protocol only for new sessions, and
	// ignores those of a load or resume.
	OnlyNew bool
	// Keeps says that its session can still write in additional directories that a load or resume
	// no longer names. Such a session is continued in a copy, which the agent makes.
	Keeps bool
	// Tools chooses the tools that it gets for directories of which it only learns from a prompt.
	Tools ToolsMode
	// AskEnv is added to its environment, as NAME=VALUE, unless the variable is set already. It
	// makes the agent ask the user before those tools write. Empty if no such setting is known.
	AskEnv []string
	// Relay says to start the session's stdio MCP servers behind a relay that tells them the
	// session's roots, because the agent does not pass them on.
	Relay bool
	// SharesServers says that the sessions of a process that have the same working directory share
	// their MCP servers. A session whose servers serve additional directories is kept apart from
	// those with other roots, if necessary in its own process.
	SharesServers bool
}

// Finds lists what an agent finds itself, so that it need not be told.
type Finds struct {
	// InCwd are globs of the instructions, skills and commands that it finds in the working
	// directory itself, relative to it and with "/". Nil means all.
	InCwd []string
	// Otherwise are instruction files that it reads there if none of the files that InCwd names
	// without wildcards exists.
	Otherwise []string
	// InRoots are such globs for additional directories. They do not apply if it learns of the
	// directories only from a prompt.
	InRoots []string
	// Commands are the names of slash commands that it obeys without announcing them.
	Commands []string
}

// Context is how text reaches the model of an agent, besides prompts.
type Context struct {
	// AfterCommands says that text after a call of one of its own commands reaches its model too.
	// Some agents do not recognize a command that is followed by other text, or drop that text.
	AfterCommands bool
	// ByServer says that the system prompt of its model contains the instructions of a session's
	// MCP servers. Then the server with the tools describes the directories in its instructions.
	ByServer bool
}

// State names an agent's own files outside the sessions' roots. Its paths begin with "~/" or
// with an environment variable, "$NAME/"; without the variable a path does not count.
type State struct {
	// OwnDirs are directories in which it keeps files that it reads and writes through the client,
	// such as long output of tools. These requests are answered from the disk.
	OwnDirs []string
	// OwnTemp says that its temporary directory is such a directory. The agent gets one that only
	// it uses.
	OwnTemp bool
	// Writes are the files and directories that it must be able to write in the sandbox.
	// Directories end with "/" and are created before it starts.
	Writes []string
	// Hosts are the hosts that it needs for its own provider, as [backend.Sandbox] has them. They
	// were found in what it asked a proxy for, and in its program. Nil if they are not known.
	Hosts []string
	// SandboxHint is a message in Markdown to the user of a session in the sandbox, "" for none.
	SandboxHint string
}

// Replay is how an agent's lists, replays and messages differ from the protocol. ListLimit,
// ModeNotice and Banner hide sessions and messages, so they do not count for an agent that says it
// has another major version than [Profile].Checked.
type Replay struct {
	// ListLimit is the length from which the agent's list of the sessions of a working directory
	// may be incomplete. 0 means that it always may be.
	ListLimit int
	// Late says that it answers session/load before it has replayed the whole conversation.
	Late bool
	// ModeNotice begins a message of the agent that ends with a space and its new mode, and stands
	// for current_mode_update. Banner begins a message outside turns that is not part of the
	// conversation. Both are empty if the agent sends no such message.
	ModeNotice, Banner string
}

// Usage says how to count what an agent reports to have used.
type Usage struct {
	// PerTurn says that the tokens in its responses to prompts are those of the turn.
	PerTurn bool
	// Restarts says that the cost of a session begins again at zero whenever it opens the session.
	Restarts bool
	// KeepsFrom is the first version whose cost goes on instead. Empty if Restarts tells for all.
	KeepsFrom string
}

// Counted returns how to count what the agent reports, for the version that it gives itself.
func (u Usage) Counted(version string) backend.Usage {
	restarts := u.Restarts
	if v := "v" + strings.TrimPrefix(version, "v"); u.KeepsFrom != "" {
		restarts = semver.IsValid(v) && semver.Compare(v, "v"+u.KeepsFrom) < 0
	}
	counted := backend.Usage{Restarts: restarts}
	if u.PerTurn {
		counted.Tokens = backend.TokensOfTurn
	}
	return counted
}

// ForRelease returns the profile of the agent with the version that it gives itself, "" if none.
func (p Profile) ForRelease(version string) Profile {
	if !p.IsChecked(version) {
		p.Replay.ListLimit, p.Replay.ModeNotice, p.Replay.Banner = 0, "", ""
	}
	return p
}

// IsChecked reports whether the profile was verified with this major version of the agent, as far
// as is known.
func (p Profile) IsChecked(version string) bool {
	major := func(v string) string {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), ".")
		return v
	}
	return p.Checked == "" || version == "" || major(p.Checked) == major(version)
}

// CommonCommands returns the names of slash commands that most agents obey, some without announcing
// them.
func CommonCommands() []string {
	return []string{"clear", "compact", "exit", "help", "login", "logout", "quit"}
}

// Command says how to start a program. Its fields:
//
//	Path string    // the program; a name without a separator is looked up in our PATH
//	Args []string  // the arguments after its name
//	Env  []string  // NAME=VALUE, added to Base
//	Base []string  // our environment if nil
//	Dir  string    // the working directory, "" for ours
//	Name string    // its name in the log and in errors; default: the base name of Path
//
// Sandbox is set by [Profile.Restrict]. Batch has no effect here.
type Command = process.Command

// StartCommand returns the command that starts the agent.
func (p Profile) StartCommand() Command {
	return Command{Path: p.Start.Command, Args: slices.Clone(p.Start.Args),
		Env: slices.Clone(p.Start.Env), Name: p.Name}
}

// Restrict returns c with p's sandbox, for sessions with these roots. It starts in a directory that
// it can read.
func (p Profile) Restrict(c Command, roots []workspace.Root) (Command, error) {
	c, err := confine.Command(c, p.Restriction(), roots)
	return confine.InReadableDir(c), err
}

// Restriction returns p's sandbox with the agent's state.
func (p Profile) Restriction() backend.Sandbox {
	s := p.Sandbox
	s.State = p.State.Writes
	return s
}

// CheckInstalled returns an error that says what to do if the program that starts the agent does
// not exist.
func (p Profile) CheckInstalled(c Command) error { return p.ExplainStart(c.Find()) }

// ExplainStart adds advice to the error of an agent that could not be started: how to install it if
// its program was not found, and how to find out why if the program, or what runs it, cannot be
// started.
func (p Profile) ExplainStart(err error) error {
	// Shells, env and Windows return these exit codes if they cannot find a program.
	exit, ok := errors.AsType[*process.ExitError](err)
	missing := ok && (exit.Code == 127 || exit.Code == 9009)
	if _, ok := errors.AsType[*process.StartError](err); !ok && !missing {
		return err
	}
	if p.Start.Install != "" && errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w; to install %s: %s", err, p.Title, p.Start.Install)
	}
	examine := "acp-agent doctor " + p.Name
	if p.Name == "" {
		examine = "acp-agent doctor -- COMMAND"
	}
	return fmt.Errorf("%w; %s says more", err, examine)
}

// Find returns the profile with the given name.
func Find(list []Profile, name string) (Profile, bool) {
	at := slices.IndexFunc(list, func(p Profile) bool { return p.Name == name })
	if at < 0 {
		return Profile{}, false
	}
	return list[at], true
}

//go:embed known.txt
var table string

// Known returns the profiles of the known agents, sorted by name.
func Known() []Profile { return slices.Clone(readTable()) }

// readTable reads the table when it is needed, to keep the start of the program fast.
var readTable = sync.OnceValue(func() (all []Profile) {
	for line := range strings.Lines(table) {
		name, value := text.CutWord(strings.TrimSpace(line))
		switch {
		case name == "" || name[0] == '#':
		case line[0] != '\t':
			all = append(all, Profile{Name: name})
		default:
			all[len(all)-1].set(name, value)
		}
	}
	return all
})

// set sets a field, such as Start.Command, or adds to it.
func (p *Profile) set(field, value string) {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(field, ".") {
		v = v.FieldByName(name)
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		n, _ := strconv.Atoi(value)
		v.SetInt(int64(n))
	case reflect.Slice: // clipped, because callers add to it
		words := append(v.Interface().([]string), strings.Fields(value)...)
		v.Set(reflect.ValueOf(slices.Clip(words)))
	default:
		v.SetString(strings.TrimSpace(v.String() + " " + value))
	}
}
