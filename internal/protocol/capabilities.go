package protocol

import "slices"

// Capabilities that a client may declare, as paths of members of clientCapabilities.
const (
	FileReads         = "fs.readTextFile"
	FileWrites        = "fs.writeTextFile"
	Terminals         = "terminal"
	TerminalSignIn    = "auth.terminal"
	Elicitation       = "elicitation"
	ElicitationForms  = "elicitation.form"
	ElicitationURLs   = "elicitation.url"
	Notices           = "session.notices"
	Compaction        = "session.compaction"
	PromptSuggestions = "session.promptSuggestions"
	Plans             = "plan"
	Subagents         = "subagents"
)

// A ClientCapability describes a member of clientCapabilities. A client declares it with an object,
// or with true if it is a flag. All of them are passed on to an agent as the client declared them.
type ClientCapability struct {
	Path string
	Flag bool
}

// clientCapabilities are those of the newest schema, stable and unstable, and those of later
// releases.
var clientCapabilities = []ClientCapability{
	{"fs", false},
	{FileReads, true},
	{FileWrites, true},
	{Terminals, true},
	{"auth", false},
	{TerminalSignIn, true},
	{Elicitation, false},
	{ElicitationForms, false},
	{ElicitationURLs, false},
	{"session", false},
	{"session.configOptions", false},
	{"session.configOptions.boolean", false},
	{Notices, false},
	{Compaction, false},
	{PromptSuggestions, false},
	{Plans, false},
	{Subagents, false},
}

// ClientCapabilities returns the capabilities of clients that the program knows. A capability
// follows the one that it is a member of.
func ClientCapabilities() []ClientCapability { return slices.Clone(clientCapabilities) }
