// Package briefing writes the texts that a child gets besides the conversation: about the session's
// roots, and the instructions and skills in them that it does not find itself. They go into its
// system prompt if it accepts one when a session is created. Otherwise, and when they change later,
// they are a marked block after the content of a prompt.
package briefing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Facts say what a child can be told.
type Facts struct {
	Roots   workspace.Roots
	Catalog *discovery.Catalog // of the roots; nil if nothing was looked for
	// Nested returns the instructions of directories below the roots, and whether the list is
	// complete; see [FindNested].
	Nested func() (list []discovery.Artifact, complete bool)
	Finds  profiles.Finds     // what the child finds itself
	Mode   profiles.RootsMode // how it is given the roots
	Server Server             // what it gets as an MCP server

	MaxInstructions, MaxSkills int // limits of their texts, in bytes
}

// Server is our own MCP server.
type Server struct {
	Name     string // "" for none
	Files    bool   // it has tools for files
	ReadOnly bool   // that do not change them
}

// Part is the text about one subject. It changes when the roots are scanned again.
type Part struct {
	text, digest string // both "" if there is nothing to say
	// changed introduces a text that replaces an earlier one. gone is said if there is no longer a
	// text.
	changed, gone string
}

// Parts returns the parts about all subjects, in the order in which a child is told about them.
func (f Facts) Parts() []Part {
	return []Part{
		newPart(f.rootsText(), "",
			"What you were told about the folders of this session no longer applies.\n"),
		newPart(f.instructionsText(),
			"These instructions replace those that you were given before in this session.\n",
			"The instructions from files that you were given before in this session no "+
				"longer apply.\n"),
		newPart(f.skillsText(),
			"This list of skills replaces the one that you were given before in this session.\n",
			"The skills that were listed before in this session are no longer available.\n"),
	}
}

func newPart(text, changed, gone string) Part {
	p := Part{text: text, changed: changed, gone: gone}
	if text != "" {
		p.digest = Digest(text)
	}
	return p
}

// Digest returns a short digest of a text.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text + "\x00"))
	return hex.EncodeToString(sum[:8])
}

// Sent are the digests of the parts that a child was sent, "" for none, as they are saved.
type Sent struct {
	Roots        string `json:"sentRoots,omitempty"`
	Instructions string `json:"sentInstructions,omitempty"`
	Skills       string `json:"sentSkills,omitempty"`
}

// Changes returns the texts about the parts that a child must be told, and what it was sent then.
// told are the parts that our MCP server tells it, or nil.
func (s Sent) Changes(parts, told []Part) (texts []string, after Sent) {
	after = s
	digests := []*string{&after.Roots, &after.Instructions, &after.Skills}
	for i, part := range parts {
		known := *digests[i]
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
		*digests[i] = part.digest
	}
	return texts, after
}

// SystemText returns the text to tell a child before the conversation, "" for none.
func SystemText(parts []Part) string {
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
	"What " + blockBegin + " blocks in the conversation say is newer.\n\n"

// WithSystemPrompt returns the params of a lifecycle request with parts added to the system prompt,
// after the client's text. A malformed text is left for the child to reject.
func WithSystemPrompt(params backend.Raw, parts []Part) backend.Raw {
	prompt := strictjson.Find(params, protocol.SystemPrompt)
	if prompt == nil || string(prompt) == "null" {
		prompt = backend.Raw(`{"mode":"append"}`)
	}
	added := SystemText(parts)
	content, ok := strictjson.Append(strictjson.Find(prompt, "content"),
		backend.Encode(sdk.TextBlock(added)))
	if added == "" || !ok || !strictjson.IsObject(prompt) {
		return params
	}
	return strictjson.Set(params, protocol.SystemPrompt, strictjson.Set(prompt, "content", content))
}

// maxRootsText is the maximum of bytes of paths that describeRoots returns.
const maxRootsText = 16 << 10

// rootsText returns the text about the session's roots for a child that learns them from a prompt.
// Others are told only in which of them they may change nothing.
func (f Facts) rootsText() string {
	if f.Mode != profiles.RootsByContext || f.Roots.Additional().Len() == 0 {
		return describeReadOnly(f.Roots)
	}
	return describeRoots(f.Roots, f.Server)
}

// describeRoots returns a text for a child about a session's roots, in order, and about its tools
// for them.
func describeRoots(roots workspace.Roots, server Server) string {
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
	if server.Files {
		does := "lists, reads, searches, writes and edits"
		if server.ReadOnly {
			does = "lists, reads and searches"
		}
		// Some agents ignore the servers that they are given.
		fmt.Fprintf(&b, "For files outside the working directory, use the tools of the MCP "+
			"server %q, if you have them: it %s files in all of them.\n", server.Name, does)
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
func (f Facts) instructionsText() string {
	if f.Catalog == nil {
		return ""
	}
	finds := f.Finds.Matcher(f.Catalog, f.Mode)
	instructions := f.Catalog.Instructions(finds).String()
	if nested := f.listNested(finds); nested != "" {
		instructions += "\n" + nested
	}
	if limit := f.MaxInstructions; len(instructions) > limit {
		instructions = text.Prefix(instructions, limit) +
			"\n(cut: the rest did not fit; look for " +
			instructionFiles + " in the folders)\n"
	}
	return instructions
}

// maxNested limits the instructions of directories that are listed, and nestedTimeout how long
// FindNested looks for them.
const (
	maxNested     = 50
	nestedTimeout = 500 * time.Millisecond
)

// FindNested looks for the instructions of directories below the roots.
func FindNested(
	catalog *discovery.Catalog, roots workspace.Roots, finds profiles.Finds,
) (list []discovery.Artifact, complete bool) {
	if catalog == nil || finds.InCwd == nil && roots.Additional().Len() == 0 {
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
func (f Facts) listNested(finds func(discovery.Artifact) bool) string {
	list, complete := f.Nested()
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
func (f Facts) skillsText() string {
	if f.Catalog == nil {
		return ""
	}
	finds := f.Finds.Matcher(f.Catalog, f.Mode)
	skills := slices.DeleteFunc(f.Catalog.Active(discovery.Skill),
		func(skill discovery.Artifact) bool { return skill.UserOnly || finds(skill) })
	if len(skills) == 0 {
		return ""
	}
	list, left := discovery.ListSkills(skills,
		f.MaxSkills-len(discovery.SkillsIntro))
	list = discovery.SkillsIntro + list
	if left > 0 {
		how := "search the folders for words of the task in files named SKILL.md"
		if f.Server.Name != "" {
			how = fmt.Sprintf("the tool find_skills of the MCP server %q, if you have it, finds "+
				"them by words of the task", f.Server.Name)
		}
		list += fmt.Sprintf("\nand %d more: %s\n", left, how)
	}
	return list
}
