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

// between stands between the names of a server and its tool.
const between = "__"

// toolOf returns the tool of an MCP server that a request is about, zero for another request. It
// fails if the names of the server and the tool cannot be told apart.
func toolOf(announced, asked json.RawMessage) (t toolName, err error) {
	for _, raw := range []json.RawMessage{announced, asked} {
		one, err := toolIn(raw)
		switch {
		case err != nil:
			return t, err
		case one.server == "":
		case t.server != "" && (one.server != t.server || one.tool != t.tool):
			return t, errors.New("the agent has announced another tool")
		default:
			t = one
		}
	}
	return t, nil
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
func toolIn(raw json.RawMessage) (t toolName, err error) {
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
			return splitTool(rest)
		case !found:
			return t, errors.New("the name of the tool is not that of its server")
		default:
			return toolName{server, tool, strictjson.FindText(raw, agent.source...)}, nil
		}
	}
	return t, nil
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
func splitTool(name string) (toolName, error) {
	server, tool, found := strings.Cut(name, between)
	if !found || server == "" || tool == "" || strings.Contains(tool, between) ||
		strings.HasPrefix(tool, "_") || strings.HasSuffix(server, "_") {
		return toolName{}, errors.New("the names of the server and its tool run together")
	}
	return toolName{server: server, tool: tool}, nil
}
