// Package conversation turns the stored updates of a session into what people read: what was said,
// which tools were called and how that ended. [WriteHTML] and [WriteMarkdown] make documents of it.
package conversation

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/sessionstore"
)

// Kind is the kind of an [Entry].
type Kind string

// The kinds of entries.
const (
	Prompt   Kind = "prompt"   // a message of the user
	Answer   Kind = "answer"   // a message of the agent
	Thought  Kind = "thought"  // what the agent thought
	Note     Kind = "note"     // what acp-agent told the user
	ToolCall Kind = "toolCall" // see Entry.Call
	Plan     Kind = "plan"     // see Entry.Steps; Text if it is not a list

	Compaction Kind = "compaction" // the agent's summary of what came before, or why there is none

	SubagentWork Kind = "subagent" // see Entry.Subagent
)

// Entry is a message, a tool call, a plan, a compaction or the work of a subagent.
//
// Texts of entries are shown to people: characters that are invisible or that a terminal would obey
// are replaced.
type Entry struct {
	Kind Kind
	// Undone says that a Note tells the user that the last prompt before it was undone.
	Undone bool
	// Failed says that a Note tells why a turn failed.
	Failed bool
	// Text is the Markdown of a message.
	Text string
	// Attachments are the parts of a message that are not text.
	Attachments []Attachment
	Call        *Call
	Steps       []Step
	Subagent    *Subagent
}

// Attachment is a part of a message that is not text.
type Attachment struct {
	Name string // of a file, or its URI
	Text string // of an embedded text, or ""
	// MediaType and Data are those of an embedded image; Data is base64.
	MediaType, Data string
}

// Call is a tool call in its last state.
type Call struct {
	Title, Name, Status string
	Texts               []string
	Diffs               []Diff

	// Kind is what the call does, such as "edit", and Paths are the files that it names.
	Kind  string
	Paths []string
	// Exit is the status of a command that has ended, or nil. Output is what it printed if Texts do
	// not have it.
	Exit   *int
	Output string
}

// Heading returns the title of the call, with the name of the tool if the title does not say it.
func (c *Call) Heading() string { return sessionstore.CallHeading(c.Title, c.Name) }

// Ended reports whether the call has completed or failed.
func (c *Call) Ended() bool { return c.Status == "completed" || c.Status == "failed" }

// texts returns what the call has returned, or else what it printed.
func (c *Call) texts() []string {
	if len(c.Texts)+len(c.Diffs) == 0 && c.Output != "" {
		return []string{c.Output}
	}
	return c.Texts
}

// Results returns what the call has returned or printed, as it was: a block of code without its
// fences.
func (c *Call) Results() []string {
	var list []string
	for _, t := range c.texts() {
		if code, rest, ok := text.CutBlock(t); ok && strings.TrimSpace(rest) == "" {
			t = code
		}
		list = append(list, strings.Trim(t, "\n"))
	}
	return list
}

// Diff is a change of a file.
type Diff struct{ Path, Old, New string }

// Step is a part of a plan.
type Step struct {
	Content string `json:"content"`
	Status  string `json:"status"`
}

// Read returns the conversation in a history. Pieces of a message are joined, and updates of a call
// or of a turn's plan change its entry.
func Read(history iter.Seq2[sessionstore.Update, error]) ([]Entry, error) {
	r := NewReader()
	for u, err := range history {
		if err != nil {
			return nil, err
		}
		r.Add(u)
	}
	return r.Entries(), nil
}

// Reader makes entries of a history, or of a part of it. It gets the updates in order.
type Reader struct {
	entries []Entry
	id      string           // of the last entry's message
	message strings.Builder  // the text of the last entry
	calls   map[string]*Call // by id, nil for those that begin outside of the part
	plans   map[string]int   // the indexes of the turn's plans, by id
	shrunk  map[string]int   // the indexes of compactions, by id

	headless bool // a call or a subagent in the part has no beginning

	key    string             // of the subagent that it reads, "" for the session itself
	shown  Subagent           // with the entries in the end
	stood  bool               // the subagent has an entry
	family map[string]*Reader // those of the session and its subagents, by key
}

// NewReader returns a Reader without entries.
func NewReader() *Reader { return newReader("", make(map[string]*Reader)) }

func newReader(key string, family map[string]*Reader) *Reader {
	r := &Reader{calls: make(map[string]*Call), plans: make(map[string]int),
		shrunk: make(map[string]int), key: key, family: family}
	family[key] = r
	return r
}

// Outside notes an update before or behind the part. It makes no entry, but says more of the calls
// in the part, and of the subagents that have no entry yet.
func (r *Reader) Outside(stored sessionstore.Update) {
	if key, of, ok := stored.Subagent(); ok {
		r.subagent(key).Outside(of)
		return
	}
	switch stored.Kind {
	case sessionstore.ToolCall, sessionstore.ToolCallUpdate, sessionstore.SubagentUpdate:
	default:
		return
	}
	u, ok := read(stored)
	switch c := r.calls[u.ToolCallID]; {
	case !ok:
	case stored.Kind == sessionstore.SubagentUpdate:
		if !r.subagent(u.SessionID).stood {
			r.describe(u)
		}
	case c != nil:
		c.Merge(u)
	default:
		r.calls[u.ToolCallID] = nil
	}
}

// Headless reports whether a call or a subagent in the part began before all updates that r got.
func (r *Reader) Headless() bool {
	for _, one := range r.family {
		if one.headless {
			return true
		}
	}
	return false
}

// Unfinished reports whether a call in the part has not ended.
func (r *Reader) Unfinished() bool {
	for _, one := range r.family {
		if slices.ContainsFunc(one.entries, func(e Entry) bool {
			return e.Call != nil && !e.Call.Ended()
		}) {
			return true
		}
	}
	return false
}

// Entries returns the entries.
func (r *Reader) Entries() []Entry {
	for _, one := range r.family {
		one.endMessage()
		one.shown.Entries = one.entries
	}
	return r.entries
}

// read reads an update.
func read(stored sessionstore.Update) (u Update, ok bool) {
	err := strictjson.Decode(stored.Body(), &u)
	return u, err == nil
}

// Update is an update of any kind, as far as it is shown.
type Update struct {
	Content   json.RawMessage `json:"content"`
	MessageID string          `json:"messageId"`
	Meta      struct {
		Ours struct {
			Note   bool `json:"note"`
			Undone bool `json:"undone"`
		} `json:"acp-agent"`
		Exit struct {
			Code *int `json:"exit_code"`
		} `json:"terminal_exit"`
		Output struct {
			Data string `json:"data"`
		} `json:"terminal_output"`
		Piece struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
	} `json:"_meta"`

	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title"`
	Name       any             `json:"name"` // a string, or it says nothing
	Kind       any             `json:"kind"` // likewise
	Locations  json.RawMessage `json:"locations"`
	Status     string          `json:"status"`
	RawOutput  json.RawMessage `json:"rawOutput"`

	Entries []Step `json:"entries"`

	Plan         json.RawMessage `json:"plan"`
	CompactionID string          `json:"compactionId"`
	Summary      json.RawMessage `json:"summary"`
	Error        json.RawMessage `json:"error"`
	Severity     string          `json:"severity"`

	SessionID   string `json:"sessionId"`
	Recipient   string `json:"recipientSessionId"`
	Description string `json:"description"`
}

// Message returns the text of a piece of a message, "" if it is not a text.
func (u Update) Message() string {
	var b block
	_ = strictjson.Decode(u.Content, &b)
	return text.Plain(b.Text)
}

// Add adds what an update says. An update that cannot be read says nothing.
func (r *Reader) Add(stored sessionstore.Update) {
	if key, of, ok := stored.Subagent(); ok {
		sub := r.subagent(key)
		r.headless = r.headless || !sub.stood
		r.stand(sub)
		sub.Add(of)
		return
	}
	u, ok := read(stored)
	if !ok {
		return
	}
	switch stored.Kind {
	case sessionstore.TurnEndUpdate:
		r.id = turnEnded
		if note, ok := stored.EndNote(); ok {
			r.Add(note)
			r.entries[len(r.entries)-1].Failed = len(u.Error) > 0
		}
	case sessionstore.UserMessageChunk:
		clear(r.plans)
		r.say(Prompt, u)
	case sessionstore.AgentMessageChunk, sessionstore.AgentThoughtChunk:
		switch {
		case u.Meta.Ours.Note:
			r.say(Note, u)
			if n := len(r.entries); u.Meta.Ours.Undone && n > 0 {
				r.entries[n-1].Undone = true
			}
		case stored.Kind == sessionstore.AgentMessageChunk:
			r.say(Answer, u)
		default:
			r.say(Thought, u)
		}
	case sessionstore.ToolCall, sessionstore.ToolCallUpdate:
		r.call(u, stored.Kind == sessionstore.ToolCall)
	case "plan":
		r.setPlan("", u.Entries, "")
	case "plan_update":
		var plan struct {
			ID      string `json:"planId"`
			Entries []Step `json:"entries"`
			Content string `json:"content"`
			URI     string `json:"uri"`
		}
		if strictjson.Decode(u.Plan, &plan) == nil {
			r.setPlan(plan.ID, plan.Entries, cmp.Or(plan.Content, plan.URI))
		}
	case "compaction_update", "compaction_summary_chunk":
		r.compact(u)
	case sessionstore.SubagentUpdate:
		if sessionstore.IsSubagentKey(u.SessionID) {
			r.stand(r.describe(u))
		}
	case "session_message":
		r.asked(u)
	}
}

// turnEnded is not the id of a message: another message begins after the end of a turn, and after
// one that is whole.
const turnEnded = "\x00"

// say adds a piece of a message.
func (r *Reader) say(kind Kind, u Update) {
	var block block
	if strictjson.Decode(u.Content, &block) != nil {
		return
	}
	attached, isAttached := block.attachment()
	if !isAttached && block.Text == "" {
		return // only its _meta says something, to the agent
	}
	last := len(r.entries) - 1
	if last < 0 || r.entries[last].Kind != kind || r.id != u.MessageID || kind == Note {
		r.append(Entry{Kind: kind})
		r.id = u.MessageID
		last++
	}
	if isAttached {
		r.entries[last].Attachments = append(r.entries[last].Attachments, attached)
		return
	}
	// Blocks of a prompt are whole; those of an agent are pieces of one text.
	if kind == Prompt && r.message.Len() > 0 {
		r.message.WriteByte('\n')
	}
	r.message.WriteString(block.Text)
}

// append adds an entry.
func (r *Reader) append(e Entry) {
	r.endMessage()
	r.entries = append(r.entries, e)
}

// endMessage gives the last entry its text.
func (r *Reader) endMessage() {
	if r.message.Len() > 0 {
		r.entries[len(r.entries)-1].Text = text.Plain(r.message.String())
		r.message.Reset()
	}
}

// block is a content block.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`

	Resource struct {
		Text string `json:"text"`
		URI  string `json:"uri"`
	} `json:"resource"`
}

// attachment returns a block that is not text.
func (b block) attachment() (a Attachment, ok bool) {
	switch b.Type {
	case "image":
		a = Attachment{Name: cmp.Or(b.URI, "image"), MediaType: b.MimeType, Data: b.Data}
	case "audio":
		a = Attachment{Name: "audio"}
	case "resource":
		a = Attachment{Name: b.Resource.URI, Text: text.Plain(b.Resource.Text)}
	case "resource_link":
		a = Attachment{Name: cmp.Or(b.URI, b.Name)}
	default:
		return a, false
	}
	a.Name = text.Printable(a.Name)
	return a, true
}

// call adds a tool call or changes it. begins says that its first update is this or an earlier one.
func (r *Reader) call(u Update, begins bool) {
	c, known := r.calls[u.ToolCallID]
	if !known {
		c = &Call{}
		r.calls[u.ToolCallID] = c
		r.append(Entry{Kind: ToolCall, Call: c})
		r.headless = r.headless || !begins
	}
	if c != nil {
		c.Merge(u)
	}
}

// Merge adds what an update says of the call.
func (c *Call) Merge(u Update) {
	c.Title = cmp.Or(text.Line(text.Plain(u.Title), 1000), c.Title)
	if name, ok := u.Name.(string); ok {
		c.Name = cmp.Or(text.Line(text.Plain(name), 100), c.Name)
	}
	c.Status = cmp.Or(text.Printable(u.Status), c.Status)
	c.result(u)
	var content []struct {
		Type    string `json:"type"`
		Content block  `json:"content"`
		Path    string `json:"path"`
		OldText string `json:"oldText"`
		NewText string `json:"newText"`
	}
	if strictjson.Decode(u.Content, &content) != nil || len(content) == 0 {
		var output string
		if len(c.Texts)+len(c.Diffs) == 0 && strictjson.Decode(u.RawOutput, &output) == nil &&
			output != "" {
			c.Texts = []string{text.Plain(output)}
		}
		return
	}
	c.Texts, c.Diffs = nil, nil
	for _, part := range content {
		attached, isAttached := part.Content.attachment()
		switch {
		case part.Type == "diff":
			c.Diffs = append(c.Diffs, Diff{Path: text.Printable(part.Path),
				Old: text.Plain(part.OldText), New: text.Plain(part.NewText)})
		case isAttached:
			c.Texts = append(c.Texts, strings.TrimSpace(attached.Name+"\n"+attached.Text))
		case part.Content.Text != "":
			c.Texts = append(c.Texts, text.Plain(part.Content.Text))
		}
	}
}

// result adds what an update says about the files and the result of a call.
func (c *Call) result(u Update) {
	if kind, ok := u.Kind.(string); ok {
		c.Kind = cmp.Or(text.Printable(kind), c.Kind)
	}
	var locations []struct {
		Path string `json:"path"`
	}
	if strictjson.Decode(u.Locations, &locations) == nil && len(locations) > 0 {
		c.Paths = nil
		for _, l := range locations {
			c.Paths = append(c.Paths, text.Printable(l.Path))
		}
	}
	if u.Meta.Exit.Code != nil {
		c.Exit = u.Meta.Exit.Code
	}
	c.Output = cmp.Or(text.Plain(u.Meta.Output.Data), c.Output) + text.Plain(u.Meta.Piece.Data)
	// Agents differ in the names.
	var raw struct {
		ExitCode *int   `json:"exitCode"`
		Code     *int   `json:"exit_code"`
		Text     string `json:"formatted_output"`
		Output   string `json:"output"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
	}
	if strictjson.Decode(u.RawOutput, &raw) != nil {
		return
	}
	for _, exit := range []*int{raw.ExitCode, raw.Code, raw.Metadata.Exit} {
		if exit != nil {
			c.Exit = exit
		}
	}
	c.Output = cmp.Or(text.Plain(cmp.Or(raw.Text, raw.Output)), c.Output)
}

// setPlan changes a plan of the turn.
func (r *Reader) setPlan(id string, steps []Step, said string) {
	at := r.entryOf(r.plans, id, Plan)
	for i, s := range steps {
		steps[i] = Step{Content: text.Plain(s.Content), Status: text.Printable(s.Status)}
	}
	r.entries[at].Steps, r.entries[at].Text = steps, text.Plain(said)
}

// compact adds what u says about a compaction: all of its summary, a piece of it, or why it failed.
func (r *Reader) compact(u Update) {
	at := r.entryOf(r.shrunk, u.CompactionID, Compaction)
	r.entries[at].Text += u.Message()
	var (
		blocks []block
		whole  strings.Builder
		failed string
	)
	if strictjson.Decode(u.Summary, &blocks) == nil {
		for _, b := range blocks {
			whole.WriteString(b.Text)
		}
	}
	_ = strictjson.Decode(u.Error, &failed)
	r.entries[at].Text = cmp.Or(text.Plain(cmp.Or(whole.String(), failed)), r.entries[at].Text)
}

// entryOf returns the index of the entry with an id, which it adds if it is missing.
func (r *Reader) entryOf(known map[string]int, id string, kind Kind) int {
	at, isKnown := known[id]
	if !isKnown {
		at = len(r.entries)
		r.append(Entry{Kind: kind})
		known[id] = at
	}
	return at
}

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
func (r *Reader) stand(sub *Reader) {
	if !sub.stood {
		sub.stood = true
		r.append(Entry{Kind: SubagentWork, Subagent: &sub.shown})
	}
}

// describe notes what an update says about a subagent.
func (r *Reader) describe(u Update) *Reader {
	sub := r.subagent(u.SessionID)
	about := &sub.shown
	about.Title = cmp.Or(text.Line(text.Plain(u.Title), 1000), about.Title)
	about.Description = cmp.Or(text.Line(text.Plain(u.Description), 1000), about.Description)
	return sub
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
