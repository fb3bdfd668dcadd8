package conversation

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/acp-agent/acp-agent/internal/text"
)

// Nodes returns entries as pages show them, with the beginnings of texts that are longer than
// limit, in bytes. Without a limit it is 0.
func Nodes(entries []Entry, limit int) []Node { return view{"You", limit}.entries(entries) }

// view makes elements of entries.
type view struct {
	asker string // who prompts
	limit int
}

func (v view) entries(list []Entry) []Node {
	nodes := make([]Node, 0, len(list))
	for _, e := range list {
		nodes = append(nodes, v.entry(e))
	}
	return nodes
}

func (v view) entry(e Entry) Node {
	kind, message := string(e.Kind), v.cut(e.Text)
	speaker := "Agent"
	switch {
	case e.Failed:
		message = strings.TrimPrefix(strings.TrimSpace(message), "(The turn failed: ")
		message = strings.TrimSuffix(message, ")")
		return element("section", "failure", element("h2", "", words("The turn failed")),
			element("pre", "", words(message)))
	case e.Kind == Note:
		return element("p", "note", words(strings.TrimSpace(message)))
	case e.Kind == Thought:
		return folded(kind, "Thought", blocks(message)...)
	case e.Kind == Compaction:
		return folded(kind, "Compaction", blocks(message)...)
	case e.Kind == Plan:
		return plan(e.Steps, message)
	case e.Kind == ToolCall:
		return v.call(e.Call)
	case e.Kind == SubagentWork:
		return folded(kind, "Subagent: "+e.Subagent.Name(),
			view{"Task", v.limit}.entries(e.Subagent.Entries)...)
	case e.Kind == Prompt:
		speaker = v.asker
	}
	n := element("article", kind, element("h2", "", words(speaker)))
	n.add(blocks(message)...)
	for _, a := range e.Attachments {
		n.add(v.attachment(a))
	}
	return n
}

// cut returns the part of a text that is shown.
func (v view) cut(s string) string {
	if v.limit == 0 || len(s) <= v.limit {
		return s
	}
	return text.Prefix(s, v.limit) + "\n\n… (" + text.Size(len(s)>>10<<10) +
		" in total; acp-agent sessions export writes all of it)"
}

// folded returns an element that shows its content when its summary is clicked on.
func folded(class, summary string, content ...Node) Node {
	n := element("details", class, element("summary", "", words(summary)))
	return *n.add(content...)
}

func plan(steps []Step, message string) Node {
	n := element("section", "plan", element("h3", "", words("Plan"))).with("aria-label", "Plan")
	n.add(blocks(message)...)
	list := element("ol", "").with("dir", "auto")
	for _, s := range steps {
		list.add(element("li", s.Status, sign(s.Status), words(s.Content),
			element("span", "hidden", words(" ("+spaced(s.Status)+")"))))
	}
	if len(steps) > 0 {
		n.add(list)
	}
	return n
}

// sign returns the mark of a status, for those who see it.
func sign(status string) Node {
	return element("span", "mark", words(mark(status))).with("aria-hidden", "true")
}

// spaced returns a status for people.
func spaced(status string) string { return strings.ReplaceAll(status, "_", " ") }

func (v view) call(c *Call) Node {
	state := "state"
	if c.Status == "completed" {
		state = "hidden"
	}
	heading := element("summary", "", sign(c.Status),
		element("span", "title", words(cmp.Or(c.Heading(), "Tool call"))))
	n := element("details", "call "+c.Status)
	var all []string
	for _, d := range c.Diffs {
		d.Old, d.New = v.cut(d.Old), v.cut(d.New)
		lines := d.Lines()
		n.add(changed(d.Path, lines))
		all = append(all, lines...)
	}
	if len(c.Diffs) > 0 {
		heading.add(counts(Changed(all))...)
	}
	heading.add(element("span", state, words(" "+spaced(c.Status))))
	for _, r := range c.Results() {
		n.add(element("pre", "result", words(v.cut(r))))
	}
	if len(n.Children) == 0 {
		return element("p", "call "+c.Status, heading.Children...)
	}
	n.Children = append([]Node{heading}, n.Children...)
	return n
}

// changed returns the lines of a diff of a file.
func changed(path string, lines []string) Node {
	shown := element("pre", "diff")
	for _, line := range lines {
		tag, class := "span", ""
		switch {
		case line[0] == '+':
			tag = "ins"
		case line[0] == '-':
			tag = "del"
		case strings.HasPrefix(line, "@@"):
			class = "place"
		}
		shown.add(element(tag, class, words(line)))
	}
	return element("figure", "", element("figcaption", "", words(path)), shown)
}

// counts returns how many lines were added and removed.
func counts(added, removed int) []Node {
	return []Node{element("span", "added", words(fmt.Sprintf(" +%d", added))),
		element("span", "removed", words(fmt.Sprintf(" −%d", removed)))}
}

// ChangedFile returns a file as pages show an edit, with a note. The lines of its diff are folded.
func ChangedFile(path string, added, removed int, note string, lines []string) Node {
	heading := element("summary", "", element("span", "title", words(path)))
	if added+removed > 0 {
		heading.add(counts(added, removed)...)
	}
	heading.add(element("span", "dim", words(note)))
	if len(lines) == 0 {
		return element("p", "call", heading.Children...)
	}
	return element("details", "call", heading, changed(path, lines))
}

func (v view) attachment(a Attachment) Node {
	if image := a.imageURL(); image != "" {
		return element("figure", "",
			element("img", "").with("src", image, "alt", "Attached image "+a.Name))
	}
	if a.Text != "" {
		return folded("", a.Name, element("pre", "", words(v.cut(a.Text))))
	}
	return element("p", "attached", words(a.Name))
}

// imageURL returns an attached image as a data URL, "" if it is not one that browsers show safely.
func (a Attachment) imageURL() string {
	switch a.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if data, err := base64.StdEncoding.DecodeString(a.Data); err == nil && len(data) > 0 {
			return "data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
		}
	}
	return ""
}
