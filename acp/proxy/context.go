package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/strictjson"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/sessionstore"
	"github.com/acp-agent/acp-agent/workspace"
)

// What a child is told in words is a block of text between these marks, before a prompt. It is for the child alone and is removed
// where it comes back, in a replay or a title.
const (
	contextTag   = "acp-agent-context"
	contextBegin = "<" + contextTag + ">"
	contextEnd   = "</" + contextTag + ">"
)

// pendingContext is what the child must be told since its session was opened.
type pendingContext struct {
	roots       string
	rootsDigest string // "" if roots is empty
	history     string
}

// promptContext is what the child is told with a prompt.
type promptContext struct {
	pendingContext
	instructions       string
	instructionsDigest string
}

// text returns the marked block, "" if there is nothing to tell.
func (pc promptContext) text() string { return contextBlock(pc.roots, pc.instructions, pc.history) }

// nextContext returns what to tell the child with the next prompt: what is pending, and the instructions of the other roots if
// they have changed.
func (s *session) nextContext() promptContext {
	s.mu.Lock()
	defer s.mu.Unlock()
	pc := promptContext{pendingContext: s.pending}
	pc.instructions, pc.instructionsDigest = newInstructions(s.host.Catalog(), s.state.SentInstructions, s.proxy.options.limits.maxInstructions)
	return pc
}

// contextDelivered records that the child has answered a prompt with pc.
func (s *session) contextDelivered(ctx context.Context, pc promptContext) {
	if pc.text() == "" {
		return
	}
	s.mu.Lock()
	if s.pending != pc.pendingContext { // the session was opened again meanwhile
		s.mu.Unlock()
		return
	}
	s.pending = pendingContext{}
	if pc.rootsDigest != "" {
		s.state.SentRoots = pc.rootsDigest
	}
	if pc.instructions != "" {
		s.state.SentInstructions = pc.instructionsDigest
	}
	s.state.HistoryDue = s.state.HistoryDue && pc.history == ""
	saved := s.state
	s.mu.Unlock()
	if err := s.save(ctx, saved); err != nil {
		s.proxy.log.Warn("cannot record what the agent was told: it will be told again", "error", err)
	}
}

// contextBlock returns the parts that are not empty as a marked block, "" if there are none. End marks in them are escaped.
func contextBlock(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part != "" {
			kept = append(kept, strings.ReplaceAll(part, "</"+contextTag, `<\/`+contextTag))
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return contextBegin + "\n" + strings.Join(kept, "\n") + contextEnd
}

// prependText returns the params of a prompt with a text block before its own content. A prompt that is not an array is left for
// the child to reject.
func prependText(params backend.Raw, text string) (backend.Raw, error) {
	if text == "" {
		return params, nil
	}
	prompt, _, err := strictjson.Take(params, "prompt")
	if err != nil {
		return nil, err
	}
	content := bytes.TrimSpace(prompt)
	if len(content) == 0 || content[0] != '[' {
		return params, nil
	}
	longer, _ := appendJSON(nil, backend.Encode(sdk.TextBlock(text)))
	longer = longer[:len(longer)-1] // its closing bracket
	if rest := bytes.TrimSpace(content[1:]); len(rest) > 0 && rest[0] != ']' {
		longer = append(longer, ',')
	}
	return strictjson.Put(params, "prompt", append(longer, content[1:]...))
}

// countBlocks returns the number of content blocks of a prompt.
func countBlocks(params backend.Raw) int {
	var p struct{ Prompt []json.RawMessage }
	_ = json.Unmarshal(params, &p)
	return len(p.Prompt)
}

// Bounds of describeRoots.
const (
	maxRootsText = 16 << 10 // bytes of paths and names
	maxEntries   = 12       // names of entries of a root
)

// describeRoots tells a child about the session's roots, in order, with their first entries, and about the tools for them if it
// has any.
func describeRoots(ctx context.Context, roots workspace.Roots, w *workspace.Workspace, tools toolServer) string {
	if roots.Additional().Len() == 0 {
		return "This session no longer has any directory other than the working directory.\n"
	}
	var b strings.Builder
	b.WriteString("This session has several root directories, in this order:\n")
	for i, dir := range roots.All() {
		line := fmt.Sprintf("%d. %q", i+1, dir)
		if i == 0 {
			line += " (the working directory)"
		}
		line += listEntries(ctx, w, dir) + "\n"
		if b.Len()+len(line) > maxRootsText {
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

// listEntries returns the names of a root's first entries that are not hidden, "" if there are none.
func listEntries(ctx context.Context, w *workspace.Workspace, dir workspace.Dir) string {
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
		case len(names) == maxEntries:
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
	list := ", with " + strings.Join(names, ", ")
	if more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

const (
	instructionsChanged = "These instructions replace those that you were given before in this session.\n"
	instructionsGone    = "The instructions of other directories that you were given before in this session no longer apply.\n"
	instructionsCut     = "\n(cut: the rest did not fit)\n"
)

// newInstructions returns the instructions of the other roots, in at most limit bytes, and their digest. The child finds those
// under its working directory itself. The text is empty if the digest is known, the digest of what the child was told last.
func newInstructions(catalog *discovery.Catalog, known string, limit int) (instructions, digestNow string) {
	if catalog == nil {
		return "", known
	}
	instructions = catalog.Instructions(discovery.OtherRoots).String()
	if instructions != "" {
		digestNow = digest(instructions)
	}
	switch {
	case digestNow == known:
		return "", digestNow
	case instructions == "":
		return instructionsGone, digestNow
	}
	if len(instructions) > limit {
		instructions = text.Prefix(instructions, limit) + instructionsCut
	}
	if known != "" {
		instructions = instructionsChanged + instructions
	}
	return instructions, digestNow
}

// conversation returns a history as text of about limit bytes: its end, if it is longer. It returns "" if there is none.
// unsentBlocks is the number of blocks at the end of the history that are about to be sent.
func conversation(history iter.Seq2[backend.Update, error], limit, unsentBlocks int) (string, error) {
	if history == nil {
		return "", nil
	}
	t := transcript{limit: limit}
	var held []utterance // the last blocks of the user, which may be unsent
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

// parseUtterance returns what an update of a history says, if it says anything.
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
		if n := len(t.parts); n > 0 && t.parts[n-1].speaker == p.speaker && p.speaker != speakerTool && len(t.parts[n-1].text) < t.limit {
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
	return "This session continues one whose messages you do not have. " + what + ", oldest first:\n" +
		b.String() + "End of the conversation so far. What follows this block is new.\n"
}

// withoutContext removes marked blocks from an update. It returns false if nothing else was in it.
func withoutContext(u backend.Update) (backend.Update, bool) {
	if u.Kind != sessionstore.SessionInfoUpdate && !bytes.Contains(u.Raw, []byte(contextTag)) {
		return u, true
	}
	inner, _, err := strictjson.Take(u.Raw, "update")
	if err != nil || inner == nil {
		return u, true
	}
	switch u.Kind {
	case sessionstore.UserMessageChunk:
		content, _, err := strictjson.Take(inner, "content")
		if err != nil {
			return u, true
		}
		content, left, changed := editMember(content, "text", withoutBlocks)
		if !changed {
			return u, true
		}
		u.Raw = replaced(u.Raw, "update", replaced(inner, "content", content))
		return u, left != ""
	case sessionstore.SessionInfoUpdate:
		inner, left, changed := editMember(inner, "title", withoutBlocksInTitle)
		if !changed {
			return u, true
		}
		u.Raw = replaced(u.Raw, "update", inner)
		return u, left != ""
	}
	return u, true
}

// editMember applies edit to a string member of object. It returns the new object and string, and whether they differ from before.
func editMember(object backend.Raw, member string, edit func(string) string) (edited backend.Raw, value string, changed bool) {
	raw, _, err := strictjson.Take(object, member)
	var before string
	if err != nil || raw == nil || json.Unmarshal(raw, &before) != nil {
		return object, "", false
	}
	if value = edit(before); value == before {
		return object, "", false
	}
	return replaced(object, member, backend.Encode(value)), value, true
}

// withoutBlocks removes marked blocks from s. A mark without its counterpart stays, because it was written by somebody else.
func withoutBlocks(s string) string {
	var left strings.Builder
	for rest := s; ; {
		before, behind, begun := strings.Cut(rest, contextBegin)
		_, after, ended := strings.Cut(behind, contextEnd)
		switch {
		case begun && ended:
			left.WriteString(before)
			rest = strings.TrimPrefix(after, "\n")
			continue
		case len(rest) == len(s):
			return s
		}
		left.WriteString(rest)
		return strings.TrimSpace(left.String())
	}
}

// withoutBlocksInTitle removes marked blocks from a title. A title is the beginning of a prompt, so the last block, or its mark,
// may have been cut off.
func withoutBlocksInTitle(title string) string {
	const recognizable = len("<acp-agent")
	title = withoutBlocks(title)
	before, _, begun := strings.Cut(title, contextBegin)
	if !begun {
		at := max(0, strings.LastIndexByte(title, contextBegin[0]))
		mark := strings.TrimRight(title[at:], ". …")
		if len(mark) < recognizable || !strings.HasPrefix(contextBegin, mark) {
			return title
		}
		before = title[:at]
	}
	return strings.TrimSpace(before)
}
