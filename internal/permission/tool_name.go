package permission

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// toolName has what a request says about a tool of an MCP server.
type toolName struct {
	server, tool string
	// source says where Claude Code has the server from, "" for other agents.
	source string
}

// The sources of servers that nobody but the user chooses, and of those that the client has named.
var (
	usersSources   = []string{"user", "local", "managed", "enterprise", "claudeai", "dynamic", "sdk"}
	clientsSources = []string{"", "dynamic", "sdk"}
)

// toolOf returns the tool of an MCP server that a request is about. err is not nil if the names of
// the server and the tool cannot be told apart.
func toolOf(agent string, announced, asked json.RawMessage) (t toolName, ok bool, err error) {
	for _, raw := range []json.RawMessage{announced, asked} {
		one, isTool, failed := toolIn(raw)
		switch {
		case failed != nil:
			return t, true, failed
		case isTool && ok && (one.server != t.server || one.tool != t.tool):
			return t, true, errors.New("the agent has announced another tool")
		case isTool:
			t, ok = one, true
		}
	}
	return t, ok, nil
}

// toolNames say where agents tell in the _meta of a call what tool of an MCP server it calls: the
// name of the tool, with mark before it, and of the server, if they tell it, with the source of it.
var toolNames = []struct {
	mark                 string
	tool, server, source []string
}{
	{"mcp__", []string{"claudeCode", "toolName"}, []string{"claudeCode", "mcpServer", "name"},
		[]string{"claudeCode", "mcpServer", "source"}},
	{"mcp__", []string{"toolName"}, nil, nil}, // Qwen Code
	// goose, of which only the names of tools of MCP servers have that of their extension before
	// them
	{"", []string{"goose", "toolCall", "toolName"}, gooseExtension, nil},
}

var gooseExtension = []string{"goose", "toolCall", "extensionName"}

// toolIn reads the _meta of a call.
func toolIn(raw json.RawMessage) (t toolName, ok bool, err error) {
	const between = "__"
	for _, agent := range toolNames {
		rest, isTool := strings.CutPrefix(strictjson.FindText(raw, agent.tool...), agent.mark)
		server := strictjson.FindText(raw, agent.server...)
		named := server
		if agent.mark != "" { // these agents write it so
			named = text.Identifier(server)
		}
		tool, found := strings.CutPrefix(rest, named+between)
		switch {
		case !isTool || rest == "" || agent.mark == "" && (server == "" || !found):
		case server == "":
			return splitTool(rest, between)
		case !found:
			return t, true, errors.New("the name of the tool is not that of its server")
		default:
			return toolName{server, tool, strictjson.FindText(raw, agent.source...)}, true, nil
		}
	}
	return t, false, nil
}

// gooseKind returns the kind of a call of goose's own tools, which says "other" for all.
func gooseKind(announced json.RawMessage) string {
	if strictjson.FindText(announced, gooseExtension...) != "developer" {
		return ""
	}
	tool := strictjson.FindText(announced, "goose", "toolCall", "toolName")
	return map[string]string{"shell": "execute", "edit": "edit", "write": "edit"}[tool]
}

// splitTool splits the name of a server from that of its tool, if that can be done in one way only.
func splitTool(name, between string) (t toolName, ok bool, err error) {
	server, tool, found := strings.Cut(name, between)
	if !found || server == "" || tool == "" || strings.Contains(tool, between) ||
		strings.HasPrefix(tool, "_") || strings.HasSuffix(server, "_") {
		return toolName{server: name}, true, errors.New("the names of the server and its tool run together")
	}
	return toolName{server: server, tool: tool}, true, nil
}
