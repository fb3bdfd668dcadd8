package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
)

// What a scripted runtime does with MCP servers, and with what the roots hold:
//
//	servers       answers with the state of each server
//	tools         answers with the names of all tools
//	use NAME      calls a tool, and answers with its result
//	start NAME    starts a server that was found
//	catalog       answers with what was found
//	history       answers with the texts of the stored history
func (s *scriptedSession) actOnTools(ctx context.Context, word, rest string, u backend.Updates) (backend.Raw, error) {
	var text string
	switch word {
	case "servers":
		var all []string
		for _, server := range s.host.Tools().Servers() {
			all = append(all, fmt.Sprintf("%s %s", server.Name, server.State))
		}
		text = strings.Join(all, ", ")
	case "tools":
		tools, err := s.host.Tools().List(ctx)
		if err != nil {
			return nil, err
		}
		for _, tool := range tools {
			text += tool.Name + " "
		}
	case "use":
		name, arguments, _ := strings.Cut(rest, " ")
		result, err := s.host.Tools().Call(ctx, u, name, backend.Raw(arguments))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		text = fmt.Sprintf("error: %v", err)
		if err == nil {
			text = blockTexts(result.Content)
		}
	case "start":
		text = "error: not found"
		if named := s.host.Catalog().Named(discovery.MCPServer, rest); len(named) > 0 {
			err := s.host.StartServer(ctx, named[0])
			text = fmt.Sprintf("started: %v", err)
			if s.runtime.started != nil {
				s.runtime.started <- err
			}
		}
	case "catalog":
		var all []string
		for _, a := range s.host.Catalog().Artifacts() {
			all = append(all, fmt.Sprintf("%s %s of %d", a.Kind, a.Name, a.Root.Index))
		}
		text = strings.Join(all, ", ")
	default:
		return endTurn, nil
	}
	return endTurn, u.Update(ctx, say(text))
}

func blockTexts(blocks []backend.Raw) string {
	var all []string
	for _, raw := range blocks {
		var block struct{ Text string }
		_ = json.Unmarshal(raw, &block)
		all = append(all, block.Text)
	}
	return strings.Join(all, "\n")
}
