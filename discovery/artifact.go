package discovery

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/acp-agent/acp-agent/workspace"
)

// Kind is the kind of an artifact.
type Kind string

// The kinds.
const (
	// Instruction is text that agents should follow while they work in a folder.
	Instruction Kind = "instruction"
	// Skill is a folder with instructions for one task and the files they need (agentskills.io).
	Skill Kind = "skill"
	// Command is a prompt that a user calls by name.
	Command Kind = "command"
	// MCPServer is the configuration of a Model Context Protocol server.
	MCPServer Kind = "mcp_server"
	// Plugin is a plugin that is not used, from a marketplace or with a manifest. For a plugin that
	// is used, its content is listed instead.
	Plugin Kind = "plugin"
)

// State says whether an artifact is used.
type State string

// The states. All but Active come with a reason.
const (
	// Active artifacts are used.
	Active State = "active"
	// Shadowed artifacts are not used because another one takes precedence.
	Shadowed State = "shadowed"
	// Invalid artifacts cannot be read, or lack something required.
	Invalid State = "invalid"
	// TooLarge artifacts are in files larger than 1 MiB, which are not read.
	TooLarge State = "too_large"
	// Unused artifacts are not for this program, or their own file says that they should not be
	// used.
	Unused State = "unused"
)

// Artifact is something that was found. Artifacts are values, but their pointers and slices refer
// to shared data, which must not be modified.
type Artifact struct {
	Kind Kind `json:"kind"`
	// Name is the name of a skill, command or server. The name of an instruction is its path in the
	// root.
	Name string `json:"name"`
	// Description describes it in one line; it may be "".
	Description string `json:"description"`
	// Root is the root in which it was found.
	Root workspace.Root `json:"-"`
	// Pattern is the pattern of the convention that found it.
	Pattern string `json:"place"`
	// Path is where it was found, as the client spells the root. Links are not resolved.
	Path string `json:"path"`
	// Ref is where the file really is; a link can lead to another root. It is zero if the file
	// could not be opened.
	Ref workspace.Ref `json:"-"`
	// Size is the size of the file in bytes.
	Size int64 `json:"size"`

	State State `json:"state"`
	// Reason says why the state is not Active.
	Reason string `json:"reason,omitempty"`
	// ShadowedBy is the Path of the artifact that takes precedence.
	ShadowedBy string `json:"shadowedBy,omitempty"`
	// Diagnostics say which rules it breaks. It is still used if possible.
	Diagnostics []string `json:"diagnostics,omitempty"`

	rel string // the path in the root, as it was found
	row row    // the convention that found it
	dir string // the directory in the root that it is for

	// Hint says what to type after the name of a command or skill.
	Hint string `json:"hint,omitempty"`
	// Uncallable is set for a skill that should not be offered as a slash command.
	Uncallable bool `json:"-"`
	// UserOnly is set for a skill that a model should not use unless the user calls it.
	UserOnly  bool     `json:"-"`
	arguments []string // the names of the first words that are typed after a skill or command

	// Applies says when an instruction applies.
	Applies Applies `json:"applies,omitzero"`
	// Imports are the files that an instruction imports, in order.
	Imports []Import `json:"imports,omitempty"`
	// Unread are the absolute paths of further imports that do not exist or could not be read. They
	// may contain ".." and links.
	Unread []string `json:"-"`
	text   string   // of an instruction
	line   int      // number of lines of the file before the text

	// Server is the configuration of a usable MCP server, otherwise nil.
	Server *Server `json:"server,omitempty"`
}

// Import is a file that an instruction file imports with @path.
type Import struct {
	// Ref is the imported file.
	Ref workspace.Ref

	written string // the path as it is written in the importing file
	by      string // the path of the importing file
	size    int64  // in bytes
	text    string
}

// Mode says when an instruction applies.
type Mode string

// The modes.
const (
	// Always applies in the directory of the instruction.
	Always Mode = "always"
	// ByPath applies to files that match the globs.
	ByPath Mode = "paths"
	// ByDescription applies when the description fits the task.
	ByDescription Mode = "description"
	// OnRequest applies when somebody refers to it.
	OnRequest Mode = "request"
)

// Applies says when an instruction applies.
type Applies struct {
	Mode Mode `json:"mode"`
	// Globs are set for ByPath, and slash-separated from the root. In some formats a glob without
	// a slash matches the last name of a path.
	Globs []string `json:"globs,omitempty"`
}

// diagnose adds a diagnostic.
func (a *Artifact) diagnose(format string, args ...any) {
	a.Diagnostics = append(a.Diagnostics, fmt.Sprintf(format, args...))
}

// invalid marks a as invalid.
func (a *Artifact) invalid(reason string) { a.State, a.Reason = Invalid, reason }

// unused marks a as unused.
func (a *Artifact) unused(reason string) { a.State, a.Reason = Unused, reason }

// shadow marks a as shadowed by winner.
func (a *Artifact) shadow(winner *Artifact, reason string) {
	a.State, a.Reason, a.ShadowedBy = Shadowed, reason, winner.Path
}

// shadowSameFile marks a as shadowed by winner, which was found in the same file.
func (a *Artifact) shadowSameFile(winner *Artifact) {
	a.shadow(winner, fmt.Sprintf("it is the same file as %s in folder %d", winner.Path,
		winner.Root.Index))
}

// clone returns a copy whose diagnostics can be appended to.
func (a Artifact) clone() Artifact {
	a.Diagnostics = slices.Clone(a.Diagnostics)
	return a
}

// MarshalJSON encodes the artifact with the members kind, name, description, root (its index),
// place (the pattern), path, realPath, size and state, and if they are not empty reason,
// shadowedBy, diagnostics, hint, applies (mode and globs), imports (written, by, realPath, size) and
// server (transport, command, args, cwd, envFile, url, inputs, and the names of env and headers).
// Later versions may add members.
func (a Artifact) MarshalJSON() ([]byte, error) {
	type fields Artifact // without this method
	w := struct {
		Root     int    `json:"root"`
		RealPath string `json:"realPath,omitempty"`
		fields
	}{Root: a.Root.Index, fields: fields(a)}
	if a.Ref.Rel() != "" {
		w.RealPath = a.Ref.Real()
	}
	return json.Marshal(w)
}

// MarshalJSON encodes the import as [Artifact.MarshalJSON] says.
func (in Import) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Written  string `json:"written"`
		By       string `json:"by"`
		RealPath string `json:"realPath"`
		Size     int64  `json:"size"`
	}{in.written, in.by, in.Ref.Real(), in.size})
}
