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

// An AgentCapability describes a member of agentCapabilities. If it is served, the program offers
// it for every agent. If it is passed on, it is offered if the agent offers it. Why says why it is
// not served.
type AgentCapability struct {
	Path     string
	Handling Handling
	Why      string
	// Account means that it is about the account of the agent.
	Account bool
}

const (
	agentPrompts   = "prompts pass unread"
	agentServers   = "served if acp-agent connects the servers of the agent"
	agentOptions   = "the agent answers, for the folders that acp-agent gives it"
	agentSubagents = "subagents of the agent are sessions of the client"
	agentSystem    = "served for a model, otherwise the agent decides what it supports"
)

// agentCapabilities are those of the newest schema, stable and unstable, and those of later
// releases. Drafts are described at https://agentclientprotocol.com/rfds.
var agentCapabilities = []AgentCapability{
	{"loadSession", Served, "", false},
	{"promptCapabilities", Passed, agentPrompts, false},
	{"promptCapabilities.image", Passed, agentPrompts, false},
	{"promptCapabilities.audio", Passed, agentPrompts, false},
	{"promptCapabilities.embeddedContext", Passed, agentPrompts, false},
	{"mcpCapabilities", Passed, agentServers, false},
	{"mcpCapabilities.http", Passed, agentServers, false},
	{"mcpCapabilities.sse", Passed, "for servers that acp-agent connects, only http", false},
	{"mcpCapabilities.acp", Refused, "servers in the client are not bridged to the agent", false},
	{"sessionCapabilities", Served, "", false},
	{"sessionCapabilities.additionalDirectories", Served, "", false},
	{"sessionCapabilities.close", Served, "", false},
	{"sessionCapabilities.delete", Served, "", false},
	{"sessionCapabilities.list", Served, "", false},
	{"sessionCapabilities.resume", Served, "", false},
	{"sessionCapabilities.fork", Served, "", false},
	{"sessionCapabilities.title", Served, "", false},
	{"sessionCapabilities.archive", Served, "", false},
	{"sessionCapabilities.status", Served, "", false},
	{"sessionCapabilities.options", Passed, agentOptions, false},
	{"sessionCapabilities.subagents", Passed, agentSubagents, false},
	{"sessionCapabilities.systemPrompt", Passed, agentSystem, false},
	{"sessionCapabilities.systemPrompt.mode", Passed, agentSystem, false},
	{"sessionCapabilities.systemPrompt.mode.override", Passed, agentSystem, false},
	{"auth", Passed, agentAccount, true},
	{"auth.logout", Passed, agentAccount, true},
	{"auth.status", Passed, agentAccount, true},
	{"providers", Passed, agentAccount, true},
}

// AgentCapabilities returns the capabilities of agents that the program knows. A capability follows
// the one that it is a member of.
func AgentCapabilities() []AgentCapability { return slices.Clone(agentCapabilities) }
