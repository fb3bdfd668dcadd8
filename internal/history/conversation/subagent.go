package conversation

import (
	"cmp"
	"encoding/json"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// Subagent records what a subagent was asked, said and did. It stands where the agent announced it.
type Subagent struct {
	Title, Description string
	Entries            []Entry
}

// Name returns what a subagent is called.
func (s *Subagent) Name() string { return cmp.Or(s.Title, s.Description, "Subagent") }

// subagent returns the reader of the subagent with the given key.
func (r *Reader) subagent(key string) *Reader {
	if r.family[key] == nil {
		return newReader(key, r.family)
	}
	return r.family[key]
}

// stand gives a subagent its entry here, unless it has one.
func (r *Reader) stand(child *Reader) {
	if !child.stood {
		child.stood = true
		r.append(Entry{Kind: SubagentWork, Subagent: &child.shown})
	}
}

// describe notes what an update says about a subagent.
func (r *Reader) describe(u Update) *Reader {
	child := r.subagent(u.SessionID)
	about := &child.shown
	about.Title = cmp.Or(text.Line(text.Plain(u.Title), 1000), about.Title)
	about.Description = cmp.Or(text.Line(text.Plain(u.Description), 1000), about.Description)
	return child
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
