package acp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/internal/session/address"
	"github.com/acp-agent/acp-agent/acp/internal/session/pace"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/jsonrpc"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// unnamedClient stands for the name of a client that does not say it.
const unnamedClient = "your editor"

// clientCapabilities holds what a client declared in initialize, and other facts about it. The zero
// value is that of a client that declared nothing.
type clientCapabilities struct {
	name     string          // for users
	declared map[string]bool // known capabilities, by path
	unknown  bool            // it declared others
	// unlimited means that the client queues any number of updates.
	unlimited bool
	// relabels means that it shows its own labels for options, so that a person would not see what
	// is remembered.
	relabels bool
	// terminalOutput means that it shows terminals of Claude Code, which are not its own.
	terminalOutput bool
	// terminalSignIn means that it can start the program in a terminal to sign in.
	terminalSignIn bool
}

// declares reports whether the client declared the capability with this path. A member that is not
// valid counts as not declared.
func (c *clientCapabilities) declares(path string) bool { return c.declared[path] }

// elicitationModes returns "form" and "url" if the client declared them.
func (c *clientCapabilities) elicitationModes() (modes []string) {
	for _, mode := range []string{"form", "url"} {
		if c.declares(protocol.Elicitation + "." + mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

func readClientCapabilities(params json.RawMessage) clientCapabilities {
	raw := strictjson.Find(params, "clientCapabilities")
	c := clientCapabilities{declared: make(map[string]bool)}
	known := map[string]bool{"": true}
	for _, capability := range protocol.ClientCapabilities() {
		known[capability.Path] = true
		value := strictjson.Find(raw, strings.Split(capability.Path, ".")...)
		c.declared[capability.Path] =
			capability.Flag && isTrue(value) || !capability.Flag && strictjson.IsObject(value)
	}
	ends, _ := sessionstore.TurnEndUpdate.Needs()
	c.declared[ends] = isTrue(strictjson.Find(raw, strings.Split(ends, ".")...))
	c.unknown = hasUnknown(raw, "", known)
	name := strictjson.FindText(params, "clientInfo", "name")
	title := strictjson.FindText(params, "clientInfo", "title")
	c.name = text.Name(cmp.Or(title, name, unnamedClient))
	c.unlimited, c.relabels = pace.IsUnlimited(name), name == "CodeCompanion.nvim"
	c.terminalOutput = isTrue(strictjson.Find(raw, "_meta", "terminal_output"))
	c.terminalSignIn = c.declares(protocol.TerminalSignIn) ||
		isTrue(strictjson.Find(raw, "_meta", "terminal-auth")) // before it was standard
	return c
}

// hasUnknown reports whether the capability with this path has members that declare others than the
// known ones.
func hasUnknown(raw json.RawMessage, path string, known map[string]bool) bool {
	for name, value := range members(raw) {
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case name == "_meta":
		case known[at]:
			if hasUnknown(value, at, known) {
				return true
			}
		case isTrue(value) || strictjson.IsObject(value):
			return true
		}
	}
	return false
}

// clientCapabilities returns what the client declared.
func (c *connection) clientCapabilities() *clientCapabilities { return &c.adapter.info().client }

// checkMethod rejects a request to the client for a method, or a mode of elicitation, that the
// client did not advertise, or for a subagent if it did not advertise these.
func (to *connection) checkMethod(method string, params backend.Raw) error {
	c := to.clientCapabilities()
	switch {
	case address.NamesSubagent(params) && !c.declares(protocol.Subagents):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
			"the client does not offer %s for subagents", method)
	case method == protocol.SessionUpdate:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "send %s with Update, so that it is recorded",
			method)
	case protocol.IsRefused(method),
		method == protocol.ReadTextFile && !c.declares(protocol.FileReads),
		method == protocol.WriteTextFile && !c.declares(protocol.FileWrites),
		strings.HasPrefix(method, protocol.TerminalPrefix) && !c.declares(protocol.Terminals),
		strings.HasPrefix(method, protocol.ElicitationPrefix) && !c.declares(protocol.Elicitation):
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the client does not offer %s", method)
	case method == protocol.ElicitationCreate:
		var mode string // the last, as clients read it
		_ = json.Unmarshal(members(params)["mode"], &mode)
		if (mode == "form" || mode == "url") && !slices.Contains(c.elicitationModes(), mode) {
			return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound,
				"the client does not offer %s with mode %s", method, mode)
		}
	}
	return nil
}
