package conversation

import (
	"cmp"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Subagent records what a subagent was asked, said and did. It stands where the agent announced it.
type Subagent struct {
	Title, Description string
	Entries            []Entry
}

// Name returns what a subagent is called.
func (s *Subagent) Name() string { return cmp.Or(s.Title, s.Description, "Subagent") }

// member is a subagent of a conversation.
type member struct {
	*Reader
	shown Subagent
	stood bool // it has an entry
}

// member returns the subagent with the given key.
func (r *Reader) member(key string) *member {
	m := r.family[key]
	if m == nil {
		reader := NewReader()
		reader.key, reader.family = key, r.family
		reader.headless, reader.sought = r.headless, r.sought
		m = &member{Reader: reader}
		r.family[key] = m
	}
	return m
}

// stand gives a subagent its entry here, unless it has one.
func (r *Reader) stand(m *member) {
	if !m.stood {
		m.stood = true
		r.append(Entry{Kind: SubagentWork, Subagent: &m.shown})
	}
}

// describe notes what an update says about a subagent.
func (r *Reader) describe(u Update) *member {
	m := r.member(u.SessionID)
	m.shown.Title = cmp.Or(text.Line(text.Plain(u.Title), 1000), m.shown.Title)
	m.shown.Description = cmp.Or(text.Line(text.Plain(u.Description), 1000), m.shown.Description)
	return m
}

// inSubagent passes an update on to the subagent that it belongs to, with do. It reports whether
// there is one.
func (r *Reader) inSubagent(
	stored sessionstore.Update, do func(m *member, of sessionstore.Update),
) bool {
	key, of, ok := stored.Child()
	if ok {
		do(r.member(key), of)
	}
	return ok
}

// asked adds the message that a subagent was sent. The sender's view of the message is left out.
func (r *Reader) asked(u Update) {
	var content []json.RawMessage
	if u.Recipient != r.key || r.key == "" || strictjson.Decode(u.Content, &content) != nil {
		return
	}
	r.id = turnEnded
	for _, piece := range content {
		r.say(Prompt, Update{Content: piece})
	}
	r.id = turnEnded
}
