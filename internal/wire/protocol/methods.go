package protocol

import "slices"

// Side is who serves a method.
type Side string

const (
	AgentSide  Side = "agent"
	ClientSide Side = "client"
	BothSides  Side = "protocol"
	ProxySide  Side = "proxy" // an agent that passes on to another one in a chain
)

// A Method describes a method. Why says why it is not served.
type Method struct {
	Name     string
	Side     Side
	Handling Handling
	Why      string
}

const (
	agentKnows   = "only the agent knows"
	agentAccount = "the account is the agent's; without an agent none is needed"
	noBridge     = "no MCP server of the type `acp` is offered, so there is none to write to"
	noChain      = "acp-agent starts the agent behind it itself"
)

// methods are those of the newest schema, stable and unstable, of later releases, and of drafts
// that were withdrawn and are still in use.
var methods = []Method{
	{Initialize, AgentSide, Served, ""},
	{Authenticate, AgentSide, Passed, agentAccount},
	{Logout, AgentSide, Passed, agentAccount},
	{AuthStatus, AgentSide, Passed, agentAccount},
	{"providers/list", AgentSide, Passed, agentAccount},
	{"providers/set", AgentSide, Passed, agentAccount},
	{"providers/disable", AgentSide, Passed, agentAccount},
	{SessionNew, AgentSide, Served, ""},
	{SessionLoad, AgentSide, Served, ""},
	{SessionResume, AgentSide, Served, ""},
	{SessionFork, AgentSide, Served, ""},
	{SessionList, AgentSide, Served, ""},
	{SessionClose, AgentSide, Served, ""},
	{SessionDelete, AgentSide, Served, ""},
	{SessionArchive, AgentSide, Served, ""},
	{SessionUnarchive, AgentSide, Served, ""},
	{SessionSetTitle, AgentSide, Served, ""},
	{SessionStatus, AgentSide, Served, ""},
	{SessionOptions, AgentSide, Served, ""},
	{SessionPrompt, AgentSide, Served, ""},
	{SessionCancel, AgentSide, Served, ""},
	{SessionSetMode, AgentSide, Passed, agentKnows},
	{SessionSetConfigOption, AgentSide, Passed, agentKnows},
	{SessionSetModel, AgentSide, Passed, agentKnows},
	{mcpMessage, AgentSide, Passed, noBridge},

	{SessionUpdate, ClientSide, Served, ""},
	{RequestPermission, ClientSide, Served, ""},
	{ReadTextFile, ClientSide, Served, ""},
	{WriteTextFile, ClientSide, Served, ""},
	{TerminalCreate, ClientSide, Served, ""},
	{"terminal/output", ClientSide, Served, ""},
	{"terminal/wait_for_exit", ClientSide, Served, ""},
	{"terminal/kill", ClientSide, Served, ""},
	{"terminal/release", ClientSide, Served, ""},
	{ElicitationCreate, ClientSide, Served, ""},
	{ElicitationComplete, ClientSide, Served, ""},
	{"auth/status_update", ClientSide, Passed, agentAccount},
	{mcpMessage, ClientSide, Passed, noBridge},

	{CancelRequest, BothSides, Served, ""},
	{"proxy/initialize", ProxySide, Refused, noChain},
	{"proxy/successor", ProxySide, Refused, noChain},
}

const mcpMessage = "mcp/message"

// Methods returns the methods that the program knows.
func Methods() []Method { return slices.Clone(methods) }

// IsRefused reports whether a message with this method, in either direction, is refused.
func IsRefused(method string) bool {
	return slices.ContainsFunc(methods, func(m Method) bool {
		return m.Name == method && m.Handling == Refused
	})
}
