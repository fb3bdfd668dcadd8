package conversation

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"
)

// Node returns an entry as pages show it.
func (e Entry) Node() Node { return e.askedBy("You") }

// askedBy returns an entry as pages show it, with the name of who prompts.
func (e Entry) askedBy(asker string) Node {
	switch kind := string(e.Kind); {
	case e.Failed:
		return element("section", "failure", element("h2", "", words("The turn failed")),
			element("pre", "", words(e.failure())))
	case e.Kind == Note:
		return element("p", "note", words(strings.TrimSpace(e.Text)))
	case e.Kind == Thought:
		return folded(kind, "Thought", Blocks(e.Text))
	case e.Kind == Compaction:
		return folded(kind, "Compaction", Blocks(e.Text))
	case e.Kind == Plan:
		return e.plan()
	case e.Kind == ToolCall:
		return e.Call.node()
	case e.Kind == SubagentWork:
		var inner []Node
		for _, one := range e.Subagent.Entries {
			inner = append(inner, one.askedBy("Task"))
		}
		return folded(kind, "Subagent: "+e.Subagent.Name(), inner)
	}
	if e.Kind != Prompt {
		asker = "Agent"
	}
	shown := element("article", string(e.Kind), element("h2", "", words(asker)))
	shown.Children = append(shown.Children, Blocks(e.Text)...)
	for _, a := range e.Attachments {
		shown.Children = append(shown.Children, a.node())
	}
	return shown
}

// folded returns an element that shows its content when its summary is clicked on.
func folded(class, summary string, content []Node) Node {
	n := element("details", class, element("summary", "", words(summary)))
	n.Children = append(n.Children, content...)
	return n
}

func (e Entry) plan() Node {
	n := element("section", "plan", element("h3", "", words("Plan"))).with("aria-label", "Plan")
	n.Children = append(n.Children, Blocks(e.Text)...)
	if len(e.Steps) == 0 {
		return n
	}
	steps := element("ol", "").with("dir", "auto")
	for _, s := range e.Steps {
		steps.Children = append(steps.Children, element("li", s.Status, sign(s.Status),
			words(s.Content), element("span", "hidden", words(" ("+spaced(s.Status)+")"))))
	}
	n.Children = append(n.Children, steps)
	return n
}

// sign returns the mark of a status, for those who see it.
func sign(status string) Node {
	return element("span", "mark", words(mark(status))).with("aria-hidden", "true")
}

// spaced returns a status for people.
func spaced(status string) string { return strings.ReplaceAll(status, "_", " ") }

func (c *Call) node() Node {
	title := cmp.Or(c.Heading(), "Tool call")
	state := "state"
	if c.Status == "completed" {
		state = "hidden"
	}
	heading := []Node{sign(c.Status), element("span", "title", words(title))}
	var content []Node
	added, removed := 0, 0
	for _, d := range c.Diffs {
		lines := element("pre", "diff")
		for _, line := range d.Lines() {
			switch {
			case line[0] == '+':
				added++
				lines.Children = append(lines.Children, element("ins", "", words(line)))
			case line[0] == '-':
				removed++
				lines.Children = append(lines.Children, element("del", "", words(line)))
			case strings.HasPrefix(line, "@@"):
				lines.Children = append(lines.Children, element("span", "place", words(line)))
			default:
				lines.Children = append(lines.Children, element("span", "", words(line)))
			}
		}
		content = append(content, element("figure", "",
			element("figcaption", "", words(d.Path)), lines))
	}
	if len(c.Diffs) > 0 {
		heading = append(heading, element("span", "added", words(fmt.Sprintf(" +%d", added))),
			element("span", "removed", words(fmt.Sprintf(" −%d", removed))))
	}
	heading = append(heading, element("span", state, words(" "+spaced(c.Status))))
	for _, r := range c.Results() {
		content = append(content, element("pre", "result", words(r)))
	}
	if len(content) == 0 {
		return element("p", "call "+c.Status, heading...)
	}
	n := element("details", "call "+c.Status, element("summary", "", heading...))
	n.Children = append(n.Children, content...)
	return n
}

func (a Attachment) node() Node {
	switch image := a.imageURL(); {
	case image != "":
		return element("figure", "", element("img", "").with("src", image, "alt", "Attached image "+a.Name))
	case a.Text != "":
		return folded("", a.Name, []Node{element("pre", "", words(a.Text))})
	}
	return element("p", "attached", words(a.Name))
}

// imageURL returns an attached image as a data URL, "" if it is none that browsers show safely.
func (a Attachment) imageURL() string {
	switch a.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		if data, err := base64.StdEncoding.DecodeString(a.Data); err == nil && len(data) > 0 {
			return "data:" + a.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)
		}
	}
	return ""
}

// failure returns why a turn failed, without what the note says around it.
func (e Entry) failure() string {
	detail := strings.TrimPrefix(strings.TrimSpace(e.Text), "(The turn failed: ")
	return strings.TrimSuffix(detail, ")")
}
