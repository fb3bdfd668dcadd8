package proxy

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// conversation returns a history as text. If that is longer than about limit bytes, it returns only
// the end. It leaves out the last unsentBlocks blocks of the history, which are about to be sent,
// and returns "" if nothing else is there.
func conversation(
	history iter.Seq2[backend.Update, error], limit, unsentBlocks int,
) (string, error) {
	if history == nil {
		return "", nil
	}
	t := transcript{limit: limit}
	var held []utterance // the last blocks of the user, perhaps unsent
	for u, err := range history {
		if err != nil {
			return "", err
		}
		said, ok := parseUtterance(u)
		if !ok {
			continue
		}
		if said.speaker != speakerUser {
			t.add(held...)
			held = held[:0]
			t.add(said)
			continue
		}
		if held = append(held, said); len(held) > unsentBlocks {
			t.add(held[0])
			held = held[1:]
		}
	}
	return t.String(), nil
}

// utterance is a part of a conversation.
type utterance struct {
	speaker string
	text    string
}

const (
	speakerUser  = "User"
	speakerAgent = "You"
	speakerTool  = "You used a tool"
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

// transcript keeps the end of a conversation.
type transcript struct {
	limit int // bytes of text
	parts []utterance
	size  int
	cut   bool
}

// add appends parts. It joins chunks of one message.
func (t *transcript) add(parts ...utterance) {
	for _, p := range parts {
		p.text = strings.ToValidUTF8(p.text, "\uFFFD")
		if n := len(t.parts); n > 0 && t.parts[n-1].speaker == p.speaker &&
			p.speaker != speakerTool && len(t.parts[n-1].text) < t.limit {
			t.parts[n-1].text += p.text
		} else {
			t.parts = append(t.parts, p)
		}
		t.size += len(p.text)
		for len(t.parts) > 1 && t.size-len(t.parts[0].text) >= t.limit {
			t.size -= len(t.parts[0].text)
			t.parts = t.parts[1:]
			t.cut = true
		}
	}
}

// String returns the transcript with an introduction, "" if it is empty.
func (t *transcript) String() string {
	if len(t.parts) == 0 {
		return ""
	}
	var b strings.Builder
	over := t.size - t.limit
	for _, p := range t.parts {
		if over > 0 {
			drop := min(over, len(p.text))
			over -= drop
			p.text, t.cut = strings.ToValidUTF8(p.text[drop:], ""), true
		}
		fmt.Fprintf(&b, "%s: %s\n", p.speaker, strings.TrimSpace(p.text))
	}
	what := "The conversation so far"
	if t.cut {
		what = "The last part of the conversation so far"
	}
	return "This session continues one whose messages you do not have. " + what +
		", oldest first:\n" +
		b.String() + "End of the conversation so far. The message before this block is new.\n"
}
