package proxy

import (
	"encoding/json"
	"fmt"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// utterance is a part of a conversation.
type utterance struct {
	speaker string
	text    string
}

const (
	speakerUser  = "user"
	speakerAgent = "agent"
	speakerTool  = "tool"
)

// parseUtterance returns the text of an update of a history, if it has any.
func parseUtterance(u backend.Update) (utterance, bool) {
	var p struct {
		Update struct {
			Title   string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(u.Raw, &p) != nil {
		return utterance{}, false
	}
	var speaker string
	switch u.Kind {
	case sessionstore.UserMessageChunk:
		speaker = speakerUser
	case sessionstore.AgentMessageChunk:
		speaker = speakerAgent
	case sessionstore.ToolCall:
		return utterance{speakerTool, p.Update.Title}, p.Update.Title != ""
	default:
		return utterance{}, false
	}
	var content struct{ Type, Text, URI string }
	_ = json.Unmarshal(p.Update.Content, &content)
	switch content.Type {
	case "text":
		return utterance{speaker, content.Text}, true
	case "":
		return utterance{}, false
	}
	return utterance{speaker, fmt.Sprintf("[%s %s]", content.Type, content.URI)}, true
}
