package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a child is told in words stands in a block of its own before a prompt, between these marks. It is for
// the child alone: where it comes back, in a replay or a title, it is taken out (P7).
const (
	contextTag   = "acp-agent-context"
	contextBegin = "<" + contextTag + ">"
	contextEnd   = "</" + contextTag + ">"
)

// pending is what the child is to be told since its session was opened.
type pending struct {
	roots string
	told  string // the digest of what roots says, "" if it says nothing
	soFar string // the conversation
}

// telling is what the child is told with a prompt.
type telling struct {
	pending
	instructions string
	taught       string // the digest of the instructions, if there are any to tell
}

// telling is what is to be told with the next prompt: what is pending, and the instructions of the other roots if
// they are not those that the child knows.
func (s *session) telling() telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := telling{pending: s.pending}
	t.instructions, t.taught = instructions(s.host.Catalog(), s.saved.Taught, s.proxy.options.limits.maxInstructions)
	return t
}

// text is the marked block of it, "" if there is nothing to tell.
func (t telling) text() string { return block(t.roots, t.instructions, t.soFar) }

// given takes note that the child has been told: a prompt with it was answered.
func (s *session) given(ctx context.Context, t telling) {
	if t.text() == "" {
		return
	}
	s.mu.Lock()
	if s.pending != t.pending {
		s.mu.Unlock()
		return
	}
	s.pending = pending{}
	if t.told != "" {
		s.saved.Told = t.told
	}
	if t.instructions != "" {
		s.saved.Taught = t.taught
	}
	s.saved.Due = s.saved.Due && t.soFar == ""
	saved := s.saved
	s.mu.Unlock()
	if err := s.save(ctx, saved); err != nil {
		s.proxy.log.Warn("what the agent was told could not be recorded: it is told again", "error", err)
	}
}

// save stores what is known of the child's session.
func (s *session) save(ctx context.Context, saved state) error {
	raw, err := saved.encode()
	if err != nil {
		return err
	}
	return s.host.SaveState(ctx, raw)
}

// block puts marks around a text. Whatever in it looks like the end mark is made not to.
func block(parts ...string) string {
	var told []string
	for _, part := range parts {
		if part != "" {
			told = append(told, strings.ReplaceAll(part, "</"+contextTag, `<\/`+contextTag))
		}
	}
	if len(told) == 0 {
		return ""
	}
	return contextBegin + "\n" + strings.Join(told, "\n") + contextEnd
}

// introduced puts a text before a prompt's own content.
func introduced(params backend.Raw, text string) (backend.Raw, error) {
	if text == "" {
		return params, nil
	}
	prompt, _, err := strictjson.Take(params, "prompt")
	if err != nil {
		return nil, err
	}
	content := bytes.TrimSpace(prompt)
	if len(content) == 0 || content[0] != '[' {
		return params, nil // the child says what is wrong with it
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil {
		return nil, err
	}
	longer := append([]byte{'['}, block...)
	if rest := bytes.TrimSpace(content[1:]); len(rest) > 0 && rest[0] != ']' {
		longer = append(longer, ',')
	}
	return strictjson.Put(params, "prompt", append(longer, content[1:]...))
}

// blocksOf is the number of blocks in a prompt.
func blocksOf(params backend.Raw) int {
	var p struct{ Prompt []json.RawMessage }
	_ = json.Unmarshal(params, &p)
	return len(p.Prompt)
}

// said is a piece of a conversation, in words.
type said struct {
	who  string
	text string
}

// conversation tells a history in at most limit bytes of text, the end of it if it is longer; "" if there is
// none. unsaid is the number of blocks at its end that are about to be sent.
func conversation(history iter.Seq2[backend.Update, error], limit, unsaid int) (string, error) {
	if history == nil {
		return "", nil
	}
	var kept tail
	kept.limit = limit
	var held []said // the last user blocks, which may be those about to be sent
	for u, err := range history {
		if err != nil {
			return "", err
		}
		piece, ok := words(u)
		if !ok {
			continue
		}
		if piece.who != "User" {
			kept.add(held...)
			held = held[:0]
			kept.add(piece)
			continue
		}
		if held = append(held, piece); len(held) > unsaid {
			kept.add(held[0])
			held = held[1:]
		}
	}
	return kept.text(), nil
}

// words is what an update says in a conversation.
func words(u backend.Update) (said, bool) {
	var p struct {
		Update struct {
			Kind    string `json:"sessionUpdate"`
			Title   string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(u, &p) != nil {
		return said{}, false
	}
	who := ""
	switch p.Update.Kind {
	case "user_message_chunk":
		who = "User"
	case "agent_message_chunk":
		who = "You"
	case "tool_call":
		return said{"You used a tool", p.Update.Title}, p.Update.Title != ""
	default:
		return said{}, false
	}
	var content struct{ Type, Text, URI, Name string }
	_ = json.Unmarshal(p.Update.Content, &content)
	switch content.Type {
	case "text":
		return said{who, content.Text}, true
	case "":
		return said{}, false
	}
	return said{who, fmt.Sprintf("[%s %s]", content.Type, content.URI)}, true
}

// tail keeps the end of a conversation.
type tail struct {
	limit  int
	pieces []said
	size   int
	cut    bool
}

// add adds pieces. One that goes on with what was said last is joined to it.
func (t *tail) add(pieces ...said) {
	for _, p := range pieces {
		p.text = strings.ToValidUTF8(p.text, "\uFFFD")
		if n := len(t.pieces); n > 0 && t.pieces[n-1].who == p.who && p.who != "You used a tool" && len(t.pieces[n-1].text) < t.limit {
			t.pieces[n-1].text += p.text
		} else {
			t.pieces = append(t.pieces, p)
		}
		t.size += len(p.text)
		for t.size > t.limit && len(t.pieces) > 1 && t.size-len(t.pieces[0].text) >= t.limit {
			t.size -= len(t.pieces[0].text)
			t.pieces = t.pieces[1:]
			t.cut = true
		}
	}
}

func (t *tail) text() string {
	if len(t.pieces) == 0 {
		return ""
	}
	var b strings.Builder
	over := t.size - t.limit
	for _, p := range t.pieces {
		if over > 0 {
			drop := min(over, len(p.text))
			over -= drop
			p.text, t.cut = strings.ToValidUTF8(p.text[drop:], ""), true
		}
		fmt.Fprintf(&b, "%s: %s\n", p.who, strings.TrimSpace(p.text))
	}
	begin := "This session goes on from one whose messages you do not have. What was said in it so far, oldest first:\n"
	if t.cut {
		begin = "This session goes on from one whose messages you do not have. The last part of what was said in it, oldest first:\n"
	}
	return begin + b.String() + "End of what was said so far. What follows this block is new.\n"
}

// A child finds what is under its working directory. The instructions of the other roots it is told with a
// prompt, and again when they have changed: what it was told last is what counts.

const (
	instructionsChanged = "These instructions take the place of those that you were given before in this session.\n"
	instructionsGone    = "The instructions of other directories that you were given before in this session count no more.\n"
	instructionsCut     = "\n(cut: the rest did not fit)\n"
)

// instructions are those of the other roots, in at most limit bytes, and their digest: no text if they are those that
// known stands for, which is "" for none.
func instructions(catalog *discovery.Catalog, known string, limit int) (text, now string) {
	if catalog == nil {
		return "", known
	}
	text = catalog.Instructions(discovery.OtherRoots).String()
	if text != "" {
		now = digestOf(text)
	}
	switch {
	case now == known:
		return "", now
	case text == "":
		return instructionsGone, now
	}
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + instructionsCut
	}
	if known != "" {
		text = instructionsChanged + text
	}
	return text, now
}

// withoutContext takes out of an update what we told the child in words. It reports whether anything is left.
func withoutContext(u backend.Update) (backend.Update, bool) {
	if !bytes.Contains(u, []byte(contextTag)) {
		return u, true
	}
	inner, _, err := strictjson.Take(u, "update")
	if err != nil || inner == nil {
		return u, true
	}
	switch kindOf(u) {
	case "user_message_chunk":
		content, _, err := strictjson.Take(inner, "content")
		if err != nil {
			return u, true
		}
		content, rest, changed := unmarked(content, "text", withoutBlocks)
		if !changed {
			return u, true
		}
		return replaced(u, "update", replaced(inner, "content", content)), rest != ""
	case "session_info_update":
		title, rest, changed := unmarked(inner, "title", withoutBlocksOrStart)
		if !changed {
			return u, true
		}
		return replaced(u, "update", title), rest != ""
	}
	return u, true
}

// unmarked takes our blocks out of an object's member, by without. rest is what is left of it.
func unmarked(object backend.Raw, member string, without func(string) string) (left backend.Raw, rest string, changed bool) {
	value, _, err := strictjson.Take(object, member)
	var told string
	if err != nil || value == nil || json.Unmarshal(value, &told) != nil {
		return object, "", false
	}
	if rest = without(told); rest == told {
		return object, "", false
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return object, "", false
	}
	return replaced(object, member, text), rest, true
}

// withoutBlocks is a text without our blocks. A mark whose other is missing is somebody's own words.
func withoutBlocks(text string) string {
	var left strings.Builder
	for rest := text; ; {
		before, behind, begun := strings.Cut(rest, contextBegin)
		_, after, ended := strings.Cut(behind, contextEnd)
		switch {
		case begun && ended:
			left.WriteString(before)
			rest = strings.TrimPrefix(after, "\n")
			continue
		case len(rest) == len(text):
			return text // there is none
		}
		left.WriteString(rest)
		return strings.TrimSpace(left.String())
	}
}

// withoutBlocksOrStart is a text without our blocks, where one whose end was cut off goes to the end of the text: a
// title is the beginning of a prompt.
func withoutBlocksOrStart(text string) string {
	text = withoutBlocks(text)
	before, _, begun := strings.Cut(text, contextBegin)
	if !begun {
		return text
	}
	return strings.TrimSpace(before)
}

// introduction tells a child of roots that it cannot be sent, in order, with what is in them, and of the tools for
// them if it has some.
func introduction(ctx context.Context, roots workspace.Roots, w *workspace.Workspace, tools toolServer) string {
	if roots.Additional().Len() == 0 {
		return "This session has no directory besides the working directory any more.\n"
	}
	var b strings.Builder
	b.WriteString("This session has several root directories, in this order:\n")
	for i, dir := range roots.All() {
		line := fmt.Sprintf("%d. %q", i+1, dir)
		if i == 0 {
			line += " (the working directory)"
		}
		line += contents(ctx, w, dir) + "\n"
		if b.Len()+len(line) > maxIntroduction {
			fmt.Fprintf(&b, "and %d more\n", roots.Len()-i)
			break
		}
		b.WriteString(line)
	}
	b.WriteString("You may read and change files in all of them as in the working directory. " +
		"Relative paths start at the working directory: use absolute paths for files in the others.\n")
	if tools.name != "" {
		does := "lists, reads, searches, writes and edits"
		if tools.readOnly {
			does = "lists, reads and searches"
		}
		fmt.Fprintf(&b, "The MCP server %q of this session has tools for all of them: it %s files there. "+
			"Use them where your own tools do not reach.\n", tools.name, does)
	}
	return b.String()
}

// contents are the names of a root's first entries; hidden ones, which are many and say little, are left out.
func contents(ctx context.Context, w *workspace.Workspace, dir workspace.Dir) string {
	if w == nil {
		return ""
	}
	opened, err := w.OpenDir(dir.String())
	if err != nil {
		return ""
	}
	defer opened.Close()
	entries, err := opened.Entries(ctx)
	if err != nil {
		return ""
	}
	var names []string
	more := 0
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name, "."):
		case len(names) == maxNames:
			more++
		case e.Type.IsDir():
			names = append(names, fmt.Sprintf("%q", e.Name+"/"))
		default:
			names = append(names, fmt.Sprintf("%q", e.Name))
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := ", with " + strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Bounds of an introduction.
const (
	maxIntroduction = 16 << 10 // bytes of paths and names
	maxNames        = 12       // of a root's entries
)
