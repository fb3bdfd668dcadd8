package sessionstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
)

// SearchQuery describes a search.
type SearchQuery struct {
	// Text has words and, in double quotes, phrases. A word is also found at the beginning of a
	// longer one. Case, accents and punctuation are ignored. A text without words finds nothing.
	Text string
	// Limit is the maximum number of results; 0 means [PageSize]. It is limited to [MaxPageSize].
	Limit int
}

// Size returns the maximum number of results.
func (q SearchQuery) Size() int { return Query{Limit: q.Limit}.Size() }

// MaxFoundInSession is the maximum number of messages of one session that a search returns.
const MaxFoundInSession = 3

// Found is a message that a search found.
type Found struct {
	// Session is the session to continue. Its State and StateKey are not set. A message that a fork
	// shares with its source is found in both.
	Session Session
	Role    Role
	// Time is about the time of the message: the session's last activity when the message was
	// indexed.
	Time time.Time
	// Segment is the number of the segment in which the message, or a part of a long one, begins.
	Segment int64
	// Line is the line of the message with the most matches, or a part of it if it is long.
	Line string
	// Matches are the places in Line that match, in order. There is at least one.
	Matches []Match
}

// Match is a part of a line: the bytes from Start up to End.
type Match struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Role is who or what a message comes from.
type Role string

// The roles of messages.
const (
	RoleUser    Role = "user"
	RoleAgent   Role = "agent"
	RoleThought Role = "thought"
	RoleTool    Role = "tool" // the title of a tool call, and the name of the tool
)

// Term is a word or a phrase to look for.
type Term struct {
	Text   string
	Prefix bool // its last word also matches the beginning of a longer word
}

// maxTerms limits the number of terms of a query.
const maxTerms = 32

// Terms returns the first terms of a query's text. Each contains a letter, a digit or a symbol such
// as an emoji.
func (q SearchQuery) Terms() (terms []Term) {
	phrase := false
	for part := range strings.SplitSeq(q.Text, `"`) {
		words := []string{part}
		if !phrase {
			words = strings.Fields(part)
		}
		for _, w := range words {
			if strings.ContainsFunc(w, isWord) && len(terms) < maxTerms {
				prefix := !phrase && isPrefix(w)
				terms = append(terms, Term{Text: strings.TrimSpace(w), Prefix: prefix})
			}
		}
		phrase = !phrase
	}
	return terms
}

// maxPassage limits the length of a passage, so that adding and removing one is a short piece of
// work.
const maxPassage = 8 << 10

// maxIndexed limits how much text of one update becomes passages, because a store makes all of them
// in one transaction, for which other owners wait.
const maxIndexed = 256 << 10

// Passage is a unit of a store's index: a message, or a part of a long one.
type Passage struct {
	Role Role
	Text string
	// Seq is the segment in which it begins.
	Seq int64
}

// Passages collects the passages of a history. The pieces in which a message was streamed become
// one passage. Of successive titles of a tool call only the last becomes a passage. The zero value
// is ready to use.
type Passages struct {
	// Done are the complete passages.
	Done []Passage

	open    Passage // Text is in message
	id      string
	message strings.Builder
	calls   map[string]call // by id
}

// call is the last heading of a tool call, and the name of its tool.
type call struct{ heading, tool string }

// Add adds an update of a segment.
func (p *Passages) Add(seq int64, u Update) {
	role, id, text, name := said(u)
	if u.Kind == TurnEndUpdate {
		p.End()
	}
	if role == "" {
		return
	}
	if role == RoleTool {
		isNew := false
		if text, isNew = p.heading(id, text, name); !isNew {
			if u.Kind == ToolCall {
				p.End()
			}
			return
		}
	}
	last := &p.open
	if role != last.Role || id != p.id {
		p.End()
		p.id = id
	} else if role == RoleTool {
		p.message.Reset()
	} else if role == RoleUser && p.message.Len() > 0 {
		p.message.WriteByte('\n') // the blocks of a prompt are whole
	}
	text = text[:passageEnd(text, maxIndexed)]
	for text != "" {
		if p.message.Len() == 0 {
			*last = Passage{Role: role, Seq: seq}
		}
		n := passageEnd(text, maxPassage-p.message.Len())
		p.message.WriteString(text[:n])
		if text = text[n:]; text != "" {
			p.End()
		}
	}
}

// heading returns the heading of a tool call, and whether it differs from the one before.
func (p *Passages) heading(id, title, tool string) (heading string, isNew bool) {
	before := p.calls[id]
	tool = cmp.Or(tool, before.tool)
	heading = CallHeading(title, tool)
	if p.calls == nil {
		p.calls = make(map[string]call)
	}
	p.calls[id] = call{cmp.Or(heading, before.heading), tool}
	return heading, heading != "" && heading != before.heading
}

// CallHeading returns the title of a tool call, with the name of the tool if the title does not say
// it.
func CallHeading(title, name string) string {
	switch {
	case title == "":
		return name
	case name == "" || strings.Contains(strings.ToLower(title), strings.ToLower(name)):
		return title
	}
	return title + " (" + name + ")"
}

// Open returns the segment in which the unfinished passage begins, which further updates may
// continue, or 0.
func (p *Passages) Open() int64 {
	if p.message.Len() == 0 {
		return 0
	}
	return p.open.Seq
}

// End completes the last passage.
func (p *Passages) End() {
	if p.message.Len() > 0 {
		p.open.Text = p.message.String()
		p.Done = append(p.Done, p.open)
		p.message.Reset()
	}
}

// passageEnd returns where to cut a text so that about max bytes come before: after white space if
// possible. It is not 0.
func passageEnd(text string, max int) int {
	if len(text) <= max {
		return len(text)
	}
	max = min(len(text), max+utf8.UTFMax)
	for max < len(text) && !utf8.RuneStart(text[max]) {
		max++
	}
	if at := strings.LastIndexFunc(text[:max], unicode.IsSpace); at > 0 {
		_, size := utf8.DecodeRuneInString(text[at:])
		return at + size
	}
	return max
}

// roles has the roles of searchable updates.
var roles = map[Kind]Role{UserMessageChunk: RoleUser, AgentMessageChunk: RoleAgent,
	AgentThoughtChunk: RoleThought, ToolCall: RoleTool, ToolCallUpdate: RoleTool}

// said returns the searchable text of an update, and the id of the message that it belongs to. For
// a tool call the text is the title, and name that of the tool. What subagents say counts as the
// session's.
func said(u Update) (role Role, message, text, name string) {
	if subagent, of, ok := u.Subagent(); ok {
		role, message, text, name = said(of)
		return role, subagent + " " + message, text, name
	}
	role = roles[u.Kind]
	if u.Kind == ToolCallUpdate && !bytes.Contains(u.Raw, []byte(`"title"`)) {
		role = "" // it may be long
	}
	if role == "" {
		return "", "", "", ""
	}
	var body struct {
		MessageID  string          `json:"messageId"`
		ToolCallID string          `json:"toolCallId"`
		Title      string          `json:"title"`
		Name       any             `json:"name"` // ignored unless it is a string
		Content    json.RawMessage `json:"content"`
		Meta       struct {
			Ours struct {
				Note bool `json:"note"`
			} `json:"acp-agent"`
		} `json:"_meta"`
	}
	if strictjson.Decode(u.Body(), &body) != nil || body.Meta.Ours.Note {
		return "", "", "", ""
	}
	if role == RoleTool {
		name, _ = body.Name.(string)
		return role, body.ToolCallID, body.Title, name
	}
	var block struct {
		Text string `json:"text"`
		Name string `json:"name"`
	}
	if strictjson.Decode(body.Content, &block) != nil {
		return "", "", "", ""
	}
	if text = block.Text; text == "" {
		text = block.Name // of a file
	}
	return role, body.MessageID, text, ""
}

const (
	// maxFoundLine limits the length of Found.Line, and foundBefore the length of the text before
	// its first match.
	maxFoundLine = 400
	foundBefore  = 80
)

// BestLine returns the line of a text with the most matches, and its matches. If the line is long,
// it returns a part of it. matches are places in text, in order.
func BestLine(text string, matches []Match) (line string, in []Match) {
	start, end := 0, 0
	for rest := matches; len(rest) > 0; {
		from := strings.LastIndexByte(text[:rest[0].Start], '\n') + 1
		to := len(text)
		if n := strings.IndexByte(text[rest[0].Start:], '\n'); n >= 0 {
			to = rest[0].Start + n
		}
		n := 1
		for n < len(rest) && rest[n].Start < to {
			n++
		}
		if n > len(in) {
			start, end, in = from, to, rest[:n]
		}
		rest = rest[n:]
	}
	if len(in) > 0 && in[0].Start-start > foundBefore {
		start = in[0].Start - foundBefore
	}
	for start < end && !utf8.RuneStart(text[start]) {
		start++
	}
	if end-start > maxFoundLine {
		for end = start + maxFoundLine; !utf8.RuneStart(text[end]); end-- {
		}
	}
	line = strings.TrimRightFunc(text[start:end], unicode.IsSpace)
	trimmed := strings.TrimLeftFunc(line, unicode.IsSpace)
	start += len(line) - len(trimmed)
	shown := make([]Match, 0, len(in))
	for _, m := range in {
		m = Match{Start: m.Start - start, End: min(m.End-start, len(trimmed))}
		if m.Start >= 0 && m.Start < m.End {
			shown = append(shown, m)
		}
	}
	return trimmed, shown
}
