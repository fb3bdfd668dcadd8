package proxy

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/process"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// Profile describes an agent: how it is started, how it takes additional directories, and where it
// departs from the protocol. The zero value fits any agent that follows the protocol.
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

	// How it is started.

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

	// How to give it additional directories, and tools and MCP servers for them.

	// Roots says how to give it additional directories.
	Roots RootsMode
	// Flag is a command-line flag that takes one directory and can be repeated, such as
	// "--add-dir". Empty if it has none.
	Flag string
	// FlagSplits are characters at which the agent splits the flag's value: a directory that
	// contains one cannot be given by flag.
	FlagSplits string
	// KeepsRoots says that its session can still write in additional directories that a load or
	// resume no longer names. Such a session is continued in a copy, which the agent makes.
	KeepsRoots bool
	// Tools says whether it gets tools for directories that it only learns of from a prompt.
	Tools ToolsMode
	// AskEnv is added to its environment, as NAME=VALUE, unless the variable is set already. It
	// makes the agent ask the user before those tools write. Empty if no such setting is known.
	AskEnv []string
	// Relay says to start the session's stdio MCP servers behind a relay that tells them the
	// session's roots, because the agent does not pass them on.
	Relay bool
	// SharesServers says that the sessions of a process that have the same working directory share
	// their MCP servers. A session whose servers serve additional directories is kept apart from
	// the others, if necessary in its own process.
	SharesServers bool

	// What its model is told, and what it finds itself.

	// Finds are globs of the instructions, skills and commands that it finds in the working
	// directory itself, relative to it and with "/". Nil means all.
	Finds []string
	// FindsOtherwise are instruction files that it reads there if none of the files that Finds
	// names without wildcards exists.
	FindsOtherwise []string
	// FindsInRoots are such globs for additional directories. They do not apply if it learns of the
	// directories only from a prompt.
	FindsInRoots []string
	// Commands are the names of slash commands that it obeys without announcing them.
	Commands []string
	// CommandContext says that text after a call of one of its own commands reaches its model too.
	// Some agents do not recognize a command that is followed by other text, or drop that text.
	CommandContext bool
	// ServerInstructions says that the system prompt of its model contains the instructions of a
	// session's MCP servers. Then the server with the tools describes the directories in its
	// instructions.
	ServerInstructions bool
	// ContextFiles says with which files text can be added to the system prompts of its sessions,
	// if any.
	ContextFiles ContextFiles

	// Its own files, and what it may write.

	// OwnDirs are directories outside the session's roots in which it keeps files that it reads and
	// writes through the client, such as long output of tools. These requests are answered from the
	// disk. Each begins with "~/" or with an environment variable, "$NAME/"; without the variable
	// the directory does not count.
	OwnDirs []string
	// OwnTemp says that its temporary directory is such a directory. The agent gets one that only
	// it uses.
	OwnTemp bool
	// State are the files and directories outside the sessions' roots that it must be able to write
	// in the sandbox, in the notation of OwnDirs. Directories end with "/" and are created before
	// it starts.
	State []string
	// Sandbox restricts its processes. State is added to what they may write. A restriction cannot
	// be widened, so each set of roots has its own process.
	Sandbox backend.Sandbox
	// SandboxHint is a message in Markdown to the user of a session in the sandbox, "" for none.
	SandboxHint string

	// How its lists, replays and messages differ from the protocol. ListLimit, ModeNotice and Banner
	// hide sessions and messages, so they do not count for an agent that says it has another major
	// version than Checked.

	// ListLimit is the length from which on the agent's list of the sessions of a working directory
	// may be incomplete. 0 means that it always may be.
	ListLimit int
	// LateReplay says that it answers session/load before it has replayed the whole conversation.
	// The stored history, if there is one, is shown instead.
	LateReplay bool
	// LossyReplay says that its replay at session/load lacks things that the user saw, such as
	// edits. The stored history is shown instead, and then what the agent did without us.
	LossyReplay bool
	// ModeNotice begins a message of the agent that ends with its new mode and stands for
	// current_mode_update. Banner begins a message outside turns that is not part of the
	// conversation. Both are empty if the agent sends no such message.
	ModeNotice, Banner string
}

// forRelease returns the profile of the agent with the version that it gives itself, "" if none.
func (p Profile) forRelease(version string) Profile {
	if p.isChecked(version) {
		return p
	}
	p.ListLimit, p.ModeNotice, p.Banner = 0, "", ""
	return p
}

// isChecked reports whether the profile was verified with this major version of the agent, as far as
// is known.
func (p Profile) isChecked(version string) bool {
	major := func(v string) string {
		v, _, _ = strings.Cut(strings.TrimPrefix(v, "v"), ".")
		return v
	}
	return p.Checked == "" || version == "" || major(p.Checked) == major(version)
}

// interpret returns the update that an update of the agent stands for.
func (p Profile) interpret(u backend.Update) backend.Update {
	if p.ModeNotice == "" || u.Kind != sessionstore.AgentMessageChunk {
		return u
	}
	said, _ := parseUtterance(u)
	mode, changes := strings.CutPrefix(said.text, p.ModeNotice)
	if !changes || mode == "" || strings.ContainsAny(mode, " \n") {
		return u
	}
	return backend.NewUpdate(sdk.SessionUpdate{
		CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{CurrentModeId: sdk.SessionModeId(mode)}})
}

// isBanner reports whether an update outside turns is a message without meaning.
func (p Profile) isBanner(u backend.Update) bool {
	if p.Banner == "" || u.Kind != sessionstore.AgentMessageChunk {
		return false
	}
	said, _ := parseUtterance(u)
	return strings.HasPrefix(said.text, p.Banner)
}

// commonCommands returns the names of slash commands that most agents obey, some without announcing
// them.
func commonCommands() []string {
	return []string{"clear", "compact", "exit", "help", "login", "logout", "quit"}
}

// StartCommand returns the command that starts the agent.
func (p Profile) StartCommand() Command {
	return Command{Path: p.Command, Args: slices.Clone(p.Args), Env: slices.Clone(p.Env),
		Name: p.Name}
}

// CheckInstalled returns an error that says what to do if the program that starts the agent does
// not exist.
func (p Profile) CheckInstalled(c Command) error { return p.explainStart(c.Find()) }

// explainStart adds advice to the error of an agent that could not be started: how to install it if
// its program was not found, and how to find out why if the program, or what runs it, cannot be
// started.
func (p Profile) explainStart(err error) error {
	// Shells, env and Windows return these exit codes if they cannot find a program.
	exit, ok := errors.AsType[*process.ExitError](err)
	missing := ok && (exit.Code == 127 || exit.Code == 9009)
	if _, ok := errors.AsType[*process.StartError](err); !ok && !missing {
		return err
	}
	if p.Install != "" && errors.Is(err, exec.ErrNotFound) {
		err = fmt.Errorf("%w; to install %s: %s", err, p.Title, p.Install)
	}
	examine := "acp-agent doctor " + p.Name
	if p.Name == "" {
		examine = "acp-agent doctor -- COMMAND"
	}
	return fmt.Errorf("%w; %s says more", err, examine)
}

// flags returns the arguments that give the agent's process dirs, or false if they cannot be given
// by flags.
func (p Profile) flags(dirs workspace.Dirs) (args []string, ok bool) {
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

// finds returns a function that reports whether the agent finds an instruction or a skill of the
// catalog itself, because of its path or because it finds a file that links to it or imports it.
// mode is how the agent learns of additional directories.
func (p Profile) finds(catalog *discovery.Catalog, mode RootsMode) func(discovery.Artifact) bool {
	inCwd, inRoots := p.Finds, p.FindsInRoots
	if inCwd == nil {
		inCwd = []string{"**"}
	}
	if mode == RootsByContext {
		inRoots = nil
	}
	fixed := slices.DeleteFunc(slices.Clone(inCwd),
		func(glob string) bool { return strings.Contains(glob, "*") })
	artifacts := slices.Concat(catalog.Of(discovery.Instruction), catalog.Of(discovery.Skill))
	isFixed := func(a discovery.Artifact) bool {
		return a.Root.Index == 0 && a.Size > 0 && matchesAny(fixed, a)
	}
	if !slices.ContainsFunc(artifacts, isFixed) {
		inCwd = slices.Concat(inCwd, p.FindsOtherwise)
	}
	byPath := func(a discovery.Artifact) bool {
		if a.Root.Index == 0 {
			return matchesAny(inCwd, a)
		}
		return matchesAny(inRoots, a)
	}
	found := make(map[workspace.Ref]bool)
	for _, a := range artifacts {
		if byPath(a) && a.Size > 0 {
			found[a.Ref] = true
			for _, imported := range a.Imports {
				found[imported.Ref] = true
			}
		}
	}
	return func(a discovery.Artifact) bool { return byPath(a) || found[a.Ref] }
}

// matchesAny reports whether one of globs matches the path of an artifact in its root.
func matchesAny(globs []string, a discovery.Artifact) bool {
	rel, err := filepath.Rel(a.Root.Dir.String(), a.Path)
	return err == nil && slices.ContainsFunc(globs, func(glob string) bool {
		matched, _ := doublestar.Match(glob, filepath.ToSlash(rel))
		return matched
	})
}

// FindProfile returns the profile with the given name.
func FindProfile(profiles []Profile, name string) (Profile, bool) {
	at := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name })
	if at < 0 {
		return Profile{}, false
	}
	return profiles[at], true
}
