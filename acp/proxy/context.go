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
	// write returns the current text for a child session that has a tool server of ours, "" if
	// there is nothing to say.
	write func(a *activation, saved state, tool toolServer) string
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
			write: (*activation).rootsText,
			sent:  func(saved *state) *string { return &saved.SentRoots },
			gone:  "What you were told about the folders of this session no longer applies.\n",
		},
		{
			write: (*activation).instructionsText,
			sent:  func(saved *state) *string { return &saved.SentInstructions },
			changed: "These instructions replace those that you were given before in this " +
				"session.\n",
			gone: "The instructions from files that you were given before in this session no " +
				"longer apply.\n",
		},
		{
			write: (*activation).skillsText,
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

// changes returns the texts about the parts that a child session with a saved state must be told,
// and its state once the child was told. told are the parts that our tool server tells it, or nil.
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

// contextParts returns the parts about all topics for a child session that has a tool server of
// ours. They change when the roots are scanned again.
func (a *activation) contextParts(saved state, tool toolServer) (parts []contextPart) {
	for _, t := range topics() {
		part := contextPart{topic: t, text: t.write(a, saved, tool)}
		if part.text != "" {
			part.digest = digest(part.text)
		}
		parts = append(parts, part)
	}
	return parts
}

// tellsByServer reports whether the instructions of our tool server tell the child what is in the
// roots.
func (a *activation) tellsByServer() bool {
	return a.proxy.options.Profile.Context.ByServer && a.proxy.offersTools() &&
		systemText(a.contextParts(state{RootsMode: a.likelyMode()}, toolServer{})) != ""
}

// systemParts returns the parts to add to a child's system prompt when the session is opened. It
// returns nil if the child takes none, or if the client uses an extension that excludes the
// standard way. Only a new session uses them: Claude Code keeps the system prompt with which a
// session began, so changes are also sent in a prompt.
func (a *activation) systemParts(c *child, target state, tool toolServer) []contextPart {
	extended := strictjson.Find(a.params, "_meta", protocol.SystemPrompt) != nil
	if !c.info.SystemPrompt || extended {
		return nil
	}
	return a.contextParts(target, tool)
}

// maxRootsText is the maximum of bytes of paths that describeRoots returns.
const maxRootsText = 16 << 10

// rootsText returns the text about the session's roots for a child that learns them from a prompt.
// Others are told only in which of them they may change nothing.
func (a *activation) rootsText(saved state, tool toolServer) string {
	if saved.RootsMode != profiles.RootsByContext || a.roots.Additional().Len() == 0 {
		return describeReadOnly(a.roots)
	}
	return describeRoots(a.roots, tool)
}

// describeRoots returns a text for a child about a session's roots, in order, and about its tools
// for them.
func describeRoots(roots workspace.Roots, tool toolServer) string {
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
	if tool.files {
		does := "lists, reads, searches, writes and edits"
		if tool.readOnly {
			does = "lists, reads and searches"
		}
		// Some agents ignore the servers that they are given.
		fmt.Fprintf(&b, "For files outside the working directory, use the tools of the MCP "+
			"server %q, if you have them: it %s files in all of them.\n", tool.name, does)
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
func (a *activation) instructionsText(saved state, _ toolServer) string {
	catalog := a.host.Catalog()
	if catalog == nil {
		return ""
	}
	finds := a.proxy.options.Profile.Finds.Matcher(catalog, saved.RootsMode)
	instructions := catalog.Instructions(finds).String()
	if nested := a.listNested(finds); nested != "" {
		instructions += "\n" + nested
	}
	if limit := a.proxy.options.limits.MaxInstructions; len(instructions) > limit {
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
func (p *proxy) findNested(
	catalog *discovery.Catalog, roots workspace.Roots,
) (list []discovery.Artifact, complete bool) {
	if catalog == nil || p.options.Profile.Finds.InCwd == nil && roots.Additional().Len() == 0 {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), nestedTimeout)
	defer cancel()
	list, complete = catalog.Below(ctx)
	return slices.DeleteFunc(list, func(found discovery.Artifact) bool {
		return found.State != discovery.Active
	}), complete
}

// listNested lists the instructions of directories that the child does not find itself, or "".
func (a *activation) listNested(finds func(discovery.Artifact) bool) string {
	list, complete := a.nested()
	list = slices.DeleteFunc(slices.Clone(list), finds)
	if len(list) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Instructions of directories\n\nBefore you read or change something in one " +
		"of these directories, read the file with the instructions for it.\n\n")
	for _, found := range discovery.Share(list, maxNested) {
		fmt.Fprintf(&b, "- %q: %q\n", found.Dir(), found.Path)
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
func (a *activation) skillsText(saved state, tool toolServer) string {
	catalog := a.host.Catalog()
	if catalog == nil {
		return ""
	}
	finds := a.proxy.options.Profile.Finds.Matcher(catalog, saved.RootsMode)
	skills := slices.DeleteFunc(catalog.Active(discovery.Skill),
		func(skill discovery.Artifact) bool { return skill.UserOnly || finds(skill) })
	if len(skills) == 0 {
		return ""
	}
	list, left := discovery.ListSkills(skills,
		a.proxy.options.limits.MaxSkills-len(discovery.SkillsIntro))
	list = discovery.SkillsIntro + list
	if left > 0 {
		how := "search the folders for words of the task in files named SKILL.md"
		if tool.name != "" {
			how = fmt.Sprintf("the tool find_skills of the MCP server %q, if you have it, finds "+
				"them by words of the task", tool.name)
		}
		list += fmt.Sprintf("\nand %d more: %s\n", left, how)
	}
	return list
}
