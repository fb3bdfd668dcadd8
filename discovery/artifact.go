package discovery

import (
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Artifact is one thing that was found. It is a value; what its pointers and slices lead to is
// shared and must not be changed.
type Artifact struct {
	Kind Kind
	// Name is what it is called by: of skills, commands and servers what conflicts are about, of
	// instructions the path inside the root.
	Name string
	// Description says in a line what it is for, "" if nothing does.
	Description string
	// Root is the root in whose conventional place it was found, and whose index it ranks by.
	Root workspace.Root
	// Place is the convention that found it.
	Place string
	// Path is where it was found, in the client's spelling of the root. Links are not resolved.
	Path string
	// Ref is where the file really is; its Root may be another one, where a link leads there. It is
	// zero for what could not be opened.
	Ref workspace.Ref
	// Size is the file's, in bytes.
	Size int64

	State State
	// Reason says why the state is not Active.
	Reason string
	// ShadowedBy is the Path of the artifact that counts instead.
	ShadowedBy string
	// Diagnostics are the rules that it breaks.
	Diagnostics []Diagnostic

	// Hint says what to type after a command's or skill's name.
	Hint string
	// Uncallable: a skill that asks not to be offered as a slash command.
	Uncallable bool
	// Applies says when an instruction counts.
	Applies Applies
	// Imports are the files that an instruction imports, in order.
	Imports []Import
	// Server is what an MCP server's configuration says; nil for other kinds, and for one that says nothing usable.
	Server *Server

	rel     string // the path inside the root, as it was found
	rank    int    // its convention's place in the table
	level   string // the directory, inside the root, that an instruction is for
	text    string // of an instruction
	oneOnly bool   // of these, a directory has one
}

// Import is a file that an instruction file imports with @path.
type Import struct {
	// Written is the path as it is written in the file.
	Written string
	// Path is the file that imports it, Ref where the imported file is: zero if it was not read.
	Path string
	Ref  workspace.Ref
	Size int64

	text string
}

// Mode says when an instruction counts.
type Mode string

// The modes.
const (
	// Always: in the whole of the directory it is for.
	Always Mode = "always"
	// ByPath: for files that match its globs.
	ByPath Mode = "paths"
	// ByDescription: when what it describes is at hand.
	ByDescription Mode = "description"
	// OnRequest: when somebody names it.
	OnRequest Mode = "request"
)

// Applies says when an instruction counts.
type Applies struct {
	Mode Mode
	// Globs are what ByPath matches: slash-separated, from the root; one without a slash is
	// matched with the last name of a path.
	Globs []string
}

// diagnose adds a diagnostic.
func (a *Artifact) diagnose(rule Rule, message string) {
	a.Diagnostics = append(a.Diagnostics, Diagnostic{rule, message})
}

// invalid makes a an invalid artifact.
func (a *Artifact) invalid(reason string) { a.State, a.Reason = Invalid, reason }

// shadow makes a give way to winner.
func (a *Artifact) shadow(winner *Artifact, reason string) {
	a.State, a.Reason, a.ShadowedBy = Shadowed, reason, winner.Path
}

// clone is a without slices that a search may append to.
func (a Artifact) clone() Artifact {
	a.Diagnostics = slices.Clone(a.Diagnostics)
	a.Imports = slices.Clone(a.Imports)
	return a
}
