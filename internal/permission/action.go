package permission

import (
	"slices"
	"strings"
)

// Action is what an agent says that it will do. The zero value is an action of which nothing is
// known. Allow rules match all of it, deny and ask rules any part, and Hints besides.
type Action struct {
	Verb Verb
	// Files are the files of Read and Edit, and what a command or the arguments of a tool may name.
	Files []File
	// Command is what Run runs, or one among the arguments of a tool.
	Command Command
	// Tool is the tool of an MCP server that is called.
	Tool ServerTool
	// Host is the one that Fetch connects to.
	Host string
	// Where is where a command runs, or the root of the session.
	Where Where
	// Hints say what else it may be about.
	Hints Hints
	// Unclear says why the action is not understood as a whole, "" if it is.
	Unclear string
	// Session is the session that does it, and Mode has the rules of the session's mode.
	Session string
	Mode    Rules
	// Standing means that the question has an answer of its own that is better than a rule for
	// exactly this action.
	Standing bool
}

// IsAction implements backend.Action.
func (Action) IsAction() {}

// File is a file of an action.
type File struct {
	// Path is the absolute path that the action names. Real is the path without links, "" if it is
	// unknown.
	Path, Real string
	// Names are the paths that an allow rule's pattern must match, all of them: the action's path
	// and the real one, relative to the root. Others are further names that a deny rule may match.
	Names, Others []string
	// Root is the real path of the root that the file is in, for this and other processes; "" if it
	// is in none.
	Root string
	// Folder means that it is a folder, of which everything may be read.
	Folder bool
	// Word is the word of a command that names it, "" for other files.
	Word string
	// Risk says why a write is asked about even if edits are allowed; see [WhyAsk].
	Risk string
}

// Command is a command line.
type Command struct {
	// Line is its text. Words are its words if it is a single command of plain words, and Known the
	// first of them if package commandline understands the others. Odd says why a command that
	// looks plain is not certain.
	Line         string
	Words, Known []string
	Odd          string
	// Local means that it names a file in the roots, such as the script that it runs.
	Local bool
	// State changes when a file changes that it names, for [Permits.AllowExactly].
	State string
}

// ServerTool is a tool of an MCP server.
type ServerTool struct {
	// Server and Name are the names of both. Config identifies the server's configuration, "" if
	// that is unknown.
	Server, Name, Config string
	// ReadOnly is the server's claim that the tool changes nothing. Found means that a file in a
	// root configures the server.
	ReadOnly, Found bool
}

// Where is a place in a session.
type Where struct {
	// Root is the real path of a root. Within is the folder in it, "" if the agent has not told.
	Root, Within string
}

// Hints are what an action may be about, without saying so for certain.
type Hints struct {
	// Names are paths or patterns, and Texts texts that the request has, in which deny and ask
	// rules look for their words.
	Names, Texts []string
	// Words are in texts that a tool gets, in no order. Files are what they, or the patterns of a
	// command, may name.
	Words []string
	Files []File
	// More means that there may be other words and files: there are more than are looked at, or a
	// command makes them when it runs.
	More bool
	// Reads are files of which a command may print the content although no word names them.
	Reads []File
}

// IsPartOf reports whether an action does nothing that the asked one does not do: the same command
// with the same files, or the same to some of its files.
func (a Action) IsPartOf(asked Action) bool {
	if a.Verb != asked.Verb ||
		strings.TrimSpace(a.Command.Line) != strings.TrimSpace(asked.Command.Line) {
		return false
	}
	return !slices.ContainsFunc(a.Files, func(f File) bool {
		return !slices.ContainsFunc(asked.Files, func(other File) bool {
			return f.Real == other.Real && (f.Real != "" || a.Verb == Run && f.Path == other.Path)
		})
	})
}

// parts returns what is allowed separately: each file that is read or edited, in its root.
func (a Action) parts() (parts []Action) {
	if a.Verb != Read && a.Verb != Edit {
		return []Action{a}
	}
	for _, f := range a.Files {
		part := a
		part.Files, part.Where.Root = []File{f}, f.Root
		parts = append(parts, part)
	}
	return parts
}

// whyUnclear says why no rule can allow the action, "" if one can.
func (a Action) whyUnclear() string {
	_, known := kinds[a.Verb]
	switch {
	case a.Unclear != "":
		return a.Unclear
	case a.Verb == Run && a.Command.Words == nil:
		return "the command is more than plain words"
	case a.Verb == Run:
		return a.Command.Odd
	case !known:
		return "no rule can allow this"
	}
	return ""
}
