package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/acp-agent/acp-agent/acp/backend"
	"github.com/acp-agent/acp-agent/acp/proxy/profiles"
	"github.com/acp-agent/acp-agent/discovery"
	"github.com/acp-agent/acp-agent/internal/text"
	"github.com/acp-agent/acp-agent/internal/wire/protocol"
	"github.com/acp-agent/acp-agent/internal/wire/strictjson"
	"github.com/acp-agent/acp-agent/workspace"
)

// topic is a subject that a child is told about in its system prompt or in a prompt.
type topic struct {
	// write returns the current text for a child session, "" if there is nothing to say.
	write func(w *contextWriter, saved state) string
	// sent returns the field of a state with the digest of the text that was last sent, "" for
	// none.
	sent func(saved *state) *string
	// changed introduces a text that replaces an earlier one. gone is said if there is no longer a
	// text.
	changed, gone string
}

// topics returns all topics, in the order in which a child is told about them.
func topics() []topic {
	return []topic{
		{
			write: (*contextWriter).rootsText,
			sent:  func(saved *state) *string { return &saved.SentRoots },
			gone:  "What you were told about the folders of this session no longer applies.\n",
		},
		{
			write: (*contextWriter).instructionsText,
			sent:  func(saved *state) *string { return &saved.SentInstructions },
			changed: "These instructions replace those that you were given before in this " +
				"session.\n",
			gone: "The instructions from files that you were given before in this session no " +
				"longer apply.\n",
		},
		{
			write: (*contextWriter).skillsText,
			sent:  func(saved *state) *string { return &saved.SentSkills },
			changed: "This list of skills replaces the one that you were given before in this " +
				"session.\n",
			gone: "The skills that were listed before in this session are no longer available.\n",
		},
	}
}

// contextPart is the text about one topic in the context for a child, and its digest. Both are ""
// if there is nothing to say.
type contextPart struct {
	topic
	text, digest string
}

// changes returns the texts about the parts that a child session with a saved state must be told, and
// its state once the child was told. told are the parts that our tool server tells it, or nil.
func changes(saved state, parts, told []contextPart) (texts []string, after state) {
	after = saved
	for i, part := range parts {
		known := *part.sent(&saved)
		if known == "" && told != nil { // what a prompt said is newer
			known = told[i].digest
		}
		switch {
		case part.digest == known:
			continue
		case part.text == "":
			part.text = part.gone
		case known != "":
			part.text = part.changed + part.text
		}
		texts = append(texts, part.text)
		*part.sent(&after) = part.digest
	}
	return texts, after
}

// systemText returns the text to tell a child before the conversation, "" for none.
func systemText(parts []contextPart) string {
	var texts []string
	for _, part := range parts {
		if part.text != "" {
			texts = append(texts, part.text)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return systemIntro + strings.Join(texts, "\n")
}

// systemIntro begins the text for a child's system prompt.
const systemIntro = "acp-agent, which connects you with the user's editor, adds the following. " +
	"What " + contextBegin + " blocks in the conversation say is newer.\n\n"

// withSystemPrompt returns the params of a lifecycle request with parts added to the system prompt,
// after the client's text. A malformed text is left for the child to reject.
func withSystemPrompt(params backend.Raw, parts []contextPart) backend.Raw {
	prompt := strictjson.Find(params, protocol.SystemPrompt)
	if prompt == nil || string(prompt) == "null" {
		prompt = backend.Raw(`{"mode":"append"}`)
	}
	added := systemText(parts)
	content, ok := strictjson.Append(strictjson.Find(prompt, "content"),
		backend.Encode(sdk.TextBlock(added)))
	if added == "" || !ok || !strictjson.IsObject(prompt) {
		return params
	}
	return strictjson.Set(params, protocol.SystemPrompt, strictjson.Set(prompt, "content", content))
}

// contextWriter writes the texts for a child about the roots and what is in them. It lives as long
// as the activation, and has no state: the texts change when the roots are scanned again.
type contextWriter struct {
	*activation
	servers *servers
	// nested returns the instructions of directories below the roots, and whether the list is
	// complete. It looks for them only once.
	nested func() ([]discovery.Artifact, bool)
}

// parts returns the parts about all topics for a child session.
func (w *contextWriter) parts(saved state) (parts []contextPart) {
	for _, t := range topics() {
		part := contextPart{topic: t, text: t.write(w, saved)}
		if part.text != "" {
			part.digest = digest(part.text)
		}
		parts = append(parts, part)
	}
	return parts
}

// tellsByServer reports whether the instructions of our tool server tell the child what is in the
// roots.
func (w *contextWriter) tellsByServer() bool {
	return w.proxy.options.Profile.Context.ByServer && w.proxy.offersTools() &&
		systemText(w.parts(state{RootsMode: w.likelyMode()})) != ""
}

// systemParts returns the parts to add to a child's system prompt when the session is opened. It
// returns nil if the child takes none, or if the client uses an extension that excludes the
// standard way. Only a new session uses them: Claude Code keeps the system prompt with which a
// session began, so changes are also sent in a prompt.
func (w *contextWriter) systemParts(c *child, target state) []contextPart {
	extended := strictjson.Find(w.params, "_meta", protocol.SystemPrompt) != nil
	if !c.info.SystemPrompt || extended {
		return nil
	}
	return w.parts(target)
}

// maxRootsText is the maximum of bytes of paths that describeRoots returns.
const maxRootsText = 16 << 10

// rootsText returns the text about the session's roots for a child that learns them from a prompt.
// Others are told only in which of them they may change nothing.
func (w *contextWriter) rootsText(saved state) string {
	if saved.RootsMode != profiles.RootsByContext || w.roots.Additional().Len() == 0 {
		return describeReadOnly(w.roots)
	}
	return describeRoots(w.roots, w.servers.tool(saved))
}

// describeRoots returns a text for a child about a session's roots, in order, and about its tools
// for them.
func describeRoots(roots workspace.Roots, tools toolServer) string {
	var b strings.Builder
	b.WriteString("This session has several folders:\n")
	for i, dir := range roots.All() {
		line := fmt.Sprintf("Folder %d: %q", i, dir)
		if i == 0 {
			line += " (the working directory)"
		}
		if b.Len()+len(line) > maxRootsText {
			fmt.Fprintf(&b, "and %d more\n", roots.Len()-i)
			break
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("You may read and change files in all of them, by absolute paths.\n")
	b.WriteString(describeReadOnly(roots))
	if tools.files {
		does := "lists, reads, searches, writes and edits"
		if tools.readOnly {
			does = "lists, reads and searches"
		}
		// Some agents ignore the servers that they are given.
		fmt.Fprintf(&b, "For files outside the working directory, use the tools of the MCP "+
			"server %q, if you have them: it %s files in all of them.\n", tools.name, does)
	}
	return b.String()
}

// describeReadOnly returns a text for a child about the roots that may only be read, "" if there
// are none.
func describeReadOnly(roots workspace.Roots) string {
	var b strings.Builder
	for _, dir := range roots.ReadOnly() {
		if line := fmt.Sprintf("%q\n", dir); b.Len()+len(line) <= maxRootsText {
			b.WriteString(line)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "These folders are read-only. The user wants nothing in them to be changed, not even " +
		"by a command:\n" + b.String()
}

// instructionsText returns the instructions that the child does not find itself, up to a limit.
func (w *contextWriter) instructionsText(saved state) string {
	catalog := w.host.Catalog()
	if catalog == nil {
		return ""
	}
	finds := w.proxy.options.Profile.Finds.Matcher(catalog, saved.RootsMode)
	instructions := catalog.Instructions(finds).String()
	if nested := w.listNested(finds); nested != "" {
		instructions += "\n" + nested
	}
	if limit := w.proxy.options.limits.MaxInstructions; len(instructions) > limit {
		instructions = text.Prefix(instructions, limit) +
			"\n(cut: the rest did not fit; look for " +
			instructionFiles + " in the folders)\n"
	}
	return instructions
}

// maxNested limits the instructions of directories that are listed, and nestedTimeout how long
// findNested looks for them.
const (
	maxNested     = 50
	nestedTimeout = 500 * time.Millisecond
)

// findNested looks for the instructions of directories below the roots.
func (w *contextWriter) findNested() (list []discovery.Artifact, complete bool) {
	catalog := w.host.Catalog()
	if catalog == nil || w.proxy.options.Profile.Finds.InCwd == nil &&
		w.roots.Additional().Len() == 0 {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), nestedTimeout)
	defer cancel()
	list, complete = catalog.Below(ctx)
	return slices.DeleteFunc(list, func(a discovery.Artifact) bool {
		return a.State != discovery.Active
	}), complete
}

// listNested lists the instructions of directories that the child does not find itself, or "".
func (w *contextWriter) listNested(finds func(discovery.Artifact) bool) string {
	list, complete := w.nested()
	list = slices.DeleteFunc(slices.Clone(list), finds)
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Instructions of directories\n\nBefore you read or change something in one " +
		"of these directories, read the file with the instructions for it.\n\n")
	for _, a := range discovery.Share(list, maxNested) {
		fmt.Fprintf(&b, "- %q: %q\n", a.Dir(), a.Path)
	}
	switch more := len(list) - maxNested; {
	case more > 0:
		fmt.Fprintf(&b, "and %d more: look for %s in other directories too\n", more,
			instructionFiles)
	case !complete:
		fmt.Fprintf(&b, "There may be more: look for %s in other directories too.\n",
			instructionFiles)
	}
	return b.String()
}

// instructionFiles are the usual names of files with instructions.
const instructionFiles = "AGENTS.md, CLAUDE.md and GEMINI.md"

// skillsText returns a list of the skills that the child does not find itself, up to a limit.
func (w *contextWriter) skillsText(saved state) string {
	catalog := w.host.Catalog()
	if catalog == nil {
		return ""
	}
	finds := w.proxy.options.Profile.Finds.Matcher(catalog, saved.RootsMode)
	skills := slices.DeleteFunc(catalog.Active(discovery.Skill),
		func(a discovery.Artifact) bool { return a.UserOnly || finds(a) })
	if len(skills) == 0 {
		return ""
	}
	list, left := discovery.ListSkills(skills,
		w.proxy.options.limits.MaxSkills-len(discovery.SkillsIntro))
	list = discovery.SkillsIntro + list
	if left > 0 {
		how := "search the folders for words of the task in files named SKILL.md"
		if tools := w.servers.tool(saved); tools.name != "" {
			how = fmt.Sprintf("the tool find_skills of the MCP server %q, if you have it, finds "+
				"them by words of the task", tools.name)
		}
		list += fmt.Sprintf("\nand %d more: %s\n", left, how)
	}
	return list
}
