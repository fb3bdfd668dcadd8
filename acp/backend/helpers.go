package backend

import (
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// ParseUpdate returns the update with the given JSON. It fails unless raw is an object with an
// object as its member "update".
func ParseUpdate(raw Raw) (Update, error) { return sessionstore.ParseUpdate(raw) }

// NewUpdate returns the update that u is encoded as: an sdk.SessionUpdate, one of its variants, or
// a [ToolCall]. It panics if that is not an object.
func NewUpdate(u any) Update {
	update, err := ParseUpdate(Encode(map[string]any{"update": u}))
	if err != nil {
		panic(fmt.Sprintf("backend: %v", err))
	}
	return update
}

// Text returns an update with a piece of the agent's answer. Unlike the SDK's type it leaves <, >
// and & in text as they are.
func Text(text string) Update { return MetaChunk(sessionstore.AgentMessageChunk, text, nil) }

// Thought returns an update with a piece of what the agent thinks, as Text does.
func Thought(text string) Update { return MetaChunk(sessionstore.AgentThoughtChunk, text, nil) }

// Note returns an update with a message to the user that is not from the agent. A model is not told
// about it, and does not take it for its own words when the session is restored.
func Note(text string) Update {
	return MetaChunk(sessionstore.AgentMessageChunk, text, map[string]bool{"note": true})
}

// Warning returns an update for something that the user should know about the session, such as a
// folder that is missing. A client with notices is shown one; it is not recorded. Any other client
// is sent message, a [Text] or [Note], which is recorded as usual.
func Warning(message Update) Update {
	return NewUpdate(map[string]any{
		"sessionUpdate": sessionstore.Notice, "severity": "warning", "title": "Warning",
		"_meta": protocol.OurMeta(map[string]any{"message": message.Raw}),
	})
}

// WarningMessage returns the message of a [Warning]. ok is false for any other update.
func WarningMessage(u Update) (message Update, ok bool) {
	if u.Kind != sessionstore.Notice {
		return Update{}, false
	}
	message, err := ParseUpdate(strictjson.Find(protocol.FindOurs(u.Body()), "message"))
	return message, err == nil && message.Kind == sessionstore.AgentMessageChunk
}

// MetaChunk returns an update with a piece of text. Its _meta has ours, unless that is nil, as the
// member acp-agent.
func MetaChunk(kind sessionstore.Kind, text string, ours any) Update {
	var u struct {
		Kind    sessionstore.Kind `json:"sessionUpdate"`
		Meta    map[string]any    `json:"_meta,omitempty"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	u.Kind, u.Content.Type, u.Content.Text = kind, "text", text
	if ours != nil {
		u.Meta = protocol.OurMeta(ours)
	}
	return Update{Kind: kind, Raw: Encode(map[string]any{"update": u})}
}

// ChunkText returns the text of a message chunk, "" for other content.
func ChunkText(u Update) string {
	return strictjson.FindText(u.Body(), "content", "text")
}

// LostSubagent returns an update of a session, or of its subagent parent unless that is "": nothing
// is known any more of what the subagent with the given key does, and nothing can be done to it.
func LostSubagent(parent, key string) Update {
	u := NewUpdate(map[string]any{"sessionUpdate": sessionstore.SubagentUpdate,
		"sessionId": key, "state": nil, "capabilities": nil})
	if parent == "" {
		return u
	}
	return sessionstore.OfSubagent(parent, u)
}

// FoundMeta returns the _meta of an entry of mcpServers that a file in a root configures as a stdio
// server. It is to be started in dir, with only the basic variables of our environment and those
// that the entry names.
func FoundMeta(dir string) map[string]any {
	return protocol.OurMeta(map[string]string{"foundDir": dir})
}

// FoundDir returns the directory in which to start an entry of mcpServers with a FoundMeta, or ""
// for any other entry.
func FoundDir(entry Raw) string {
	return strictjson.FindText(protocol.FindOurs(entry), "foundDir")
}

// Encode returns value as JSON, with <, > and & as they are. It panics if value cannot be encoded.
func Encode(value any) Raw { return strictjson.Encode(value) }

// Stopped returns the result of a prompt whose turn has ended for this reason.
func Stopped(reason sdk.StopReason) Raw { return Encode(sdk.PromptResponse{StopReason: reason}) }

// FailedTurn returns the result of a prompt whose turn did not do what the user wanted, as the
// answer explains. Clients that know no more see the end of a turn.
func FailedTurn() Raw {
	return Encode(sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn,
		Meta: protocol.OurMeta(map[string]bool{"failed": true})})
}

// NewCopy describes a session that continues another one, whose history its agent does not have: it
// has the folders of the source, and a mark in its title.
func NewCopy(source sessionstore.Session, mark string) sessionstore.Session {
	n := sessionstore.Session{ID: sessionstore.NewID(), Agent: source.Agent, Keys: source.Keys,
		State: source.State}
	if source.Title != "" {
		n.Title = text.Line(source.Title+" ("+mark+")", 200)
	}
	if source.Agent.Profile != "" {
		// The state names the agent's own session, which is the source's. Without it the agent gets
		// a new one, and is told the conversation.
		n.State = []byte("{}")
	}
	return n
}
