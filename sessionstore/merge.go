package sessionstore

import (
	"strings"

	"github.com/go-json-experiment/json"
)

// maxMerged bounds the text of a merged chunk, so that none becomes a line that a client refuses.
const maxMerged = 64 << 10

// textChunk is a chunk of a message that is its text and nothing else.
type textChunk struct {
	Update struct {
		Kind    string `json:"sessionUpdate"`
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		MessageID *string `json:"messageId,omitzero"`
	} `json:"update"`
}

// Merge joins neighbouring text chunks of one message, which a client shows as one anyway. Joined
// are agent_message_chunk, agent_thought_chunk and user_message_chunk, of the same kind and with
// the same messageId or none, as long as they hold nothing but text: one with _meta,
// annotations or a member nobody here knows stays as it is, like everything else. State kinds
// do not come between; hand over what [Split] calls history.
func Merge(history []Update) []Update {
	m := merger{out: make([]Update, 0, len(history))}
	for _, u := range history {
		m.add(u)
	}
	m.end()
	return m.out
}

// merger holds the chunk that is being joined, if any.
type merger struct {
	out   []Update
	first Update // as it came
	head  textChunk
	text  strings.Builder
	count int
}

func (m *merger) add(u Update) {
	chunk, ok := plainText(u)
	if !ok {
		m.end()
		m.out = append(m.out, u)
		return
	}
	if m.count > 0 && (!sameMessage(&m.head, &chunk) || m.text.Len()+len(chunk.Update.Content.Text) > maxMerged) {
		m.end()
	}
	if m.count == 0 {
		m.first, m.head = u, chunk
	}
	m.text.WriteString(chunk.Update.Content.Text)
	m.count++
}

// end writes what was joined. A chunk that stood alone keeps its bytes.
func (m *merger) end() {
	switch {
	case m.count == 1:
		m.out = append(m.out, m.first)
	case m.count > 1:
		m.head.Update.Content.Text = m.text.String()
		joined, err := json.Marshal(&m.head)
		if err != nil {
			panic("sessionstore: a decoded chunk does not encode: " + err.Error())
		}
		m.out = append(m.out, joined)
	}
	m.count = 0
	m.text.Reset()
}

// plainText decodes u if it is nothing but a chunk of text. Decoding is exact: duplicate names, text that
// is not Unicode, and unknown members are an error.
func plainText(u Update) (textChunk, bool) {
	var chunk textChunk
	if err := json.Unmarshal(u, &chunk, json.RejectUnknownMembers(true)); err != nil {
		return chunk, false
	}
	switch chunk.Update.Kind {
	case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
		return chunk, chunk.Update.Content.Type == "text"
	}
	return chunk, false
}

func sameMessage(a, b *textChunk) bool {
	x, y := a.Update.MessageID, b.Update.MessageID
	return a.Update.Kind == b.Update.Kind && (x == nil) == (y == nil) && (x == nil || *x == *y)
}
